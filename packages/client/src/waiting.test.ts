import { expect, test } from 'bun:test'
import type { Call, CallState } from './types.ts'
import { endAndAnswer, holdAndAnswer, swap } from './waiting.ts'

/** A call that notes every request to it. */
function callIn(name: string, asked: string[], who: string, accept: () => Promise<void> = async () => {}) {
  const state = { name, ...(name === 'ringing' && { direction: 'incoming' }) } as CallState
  const call = {
    ...{ state, held: false },
    async hold() {
      asked.push(`hold ${who}`)
      call.held = true
    },
    async resume() {
      asked.push(`resume ${who}`)
      call.held = false
    },
    end: async () => void asked.push(`end ${who}`),
    async accept() {
      asked.push(`accept ${who}`)
      await accept()
    },
  }
  return call as typeof call & Call
}

const codeOf = (promise: Promise<void>) => promise.then(() => 'done').catch(({ code }) => code)

test('[WAIT1] hold and answer: the first call is on hold before the second one is answered', async () => {
  const asked: string[] = []
  const [first, second] = [callIn('connected', asked, 'first'), callIn('ringing', asked, 'second')]
  expect(await codeOf(holdAndAnswer(first, second))).toBe('done')
  expect([asked, first.held]).toEqual([['hold first', 'accept second'], true])
})

test('[WAIT1] the first call goes on where the second one cannot be answered, unless it was on hold before', async () => {
  const over = async () => {
    throw Object.assign(new Error(), { code: 'CALL_OVER' })
  }
  const asked: string[] = []
  const first = callIn('connected', asked, 'first')
  expect(await codeOf(holdAndAnswer(first, callIn('ringing', asked, 'second', over)))).toBe('CALL_OVER')
  expect(asked).toEqual(['hold first', 'accept second', 'resume first'])
  await first.hold()
  expect(await codeOf(holdAndAnswer(first, callIn('ringing', asked, 'second', over)))).toBe('CALL_OVER')
  expect([asked.at(-1), first.held]).toEqual(['accept second', true])
})

test('[WAIT1] the first call stays on hold while an accept without a reply is asked again', async () => {
  const asked: string[] = []
  const second = callIn('ringing', asked, 'second', async () => {
    Object.assign(second.state, { answering: true })
    throw Object.assign(new Error(), { code: 'TIMEOUT' })
  })
  const first = callIn('connected', asked, 'first')
  expect(await codeOf(holdAndAnswer(first, second))).toBe('TIMEOUT')
  expect(first.held).toBe(true)
})

test('[WAIT1] a first call that rings is not put on hold, and a second one that does not ring is not answered', async () => {
  const asked: string[] = []
  const [rings, live] = [callIn('ringing', asked, 'rings'), callIn('connected', asked, 'live')]
  expect(await codeOf(holdAndAnswer(rings, rings))).toBe('CALL_INVALID_STATE')
  for (const answer of [holdAndAnswer, endAndAnswer])
    expect(await codeOf(answer(live, live))).toBe('CALL_INVALID_STATE')
  expect(asked).toEqual([])
})

test('[WAIT1] end and answer, and swap', async () => {
  const asked: string[] = []
  const [first, second] = [callIn('connected', asked, 'first'), callIn('ringing', asked, 'second')]
  await endAndAnswer(first, second)
  await swap(second, first)
  expect(asked).toEqual(['end first', 'accept second', 'hold second', 'resume first'])
})
