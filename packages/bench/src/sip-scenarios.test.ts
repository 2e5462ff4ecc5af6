import { expect, test } from 'bun:test'
import { sessionDescription } from './session-description.ts'
import { calleeScenario, callerScenario, SIP_MESSAGES } from './sip-scenarios.ts'

const sends = (scenario: string) =>
  [...scenario.matchAll(/<send[^>]*><!\[CDATA\[\n([^\n]*)/g)].map(([, first]) => first!)

test('the two ends send the messages of one call', () => {
  const first = [...sends(callerScenario()), ...sends(calleeScenario())].map((line) =>
    line.replace(/ sip:.*| \[next.*/, ''),
  )
  expect(first).toEqual(['INVITE', 'ACK', 'BYE', 'SIP/2.0 180 Ringing', 'SIP/2.0 200 OK', 'SIP/2.0 200 OK'])
  expect(first).toHaveLength(SIP_MESSAGES)
})

test('offer and answer are those of the other measurements', () => {
  const lines = (type: 'offer' | 'answer') =>
    `\n\n${sessionDescription(type).sdp.trimEnd().replaceAll('\r\n', '\n')}\n]]>`
  expect(callerScenario()).toContain(lines('offer'))
  expect(calleeScenario()).toContain(lines('answer'))
  // SIPp would fill in what is in square brackets.
  expect(lines('offer').replace(']]>', '')).not.toMatch(/[[\]]/)
})
