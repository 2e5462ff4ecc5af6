import { expect, test } from 'bun:test'
import { candidate } from '../candidate.ts'
import type { Client, Pair } from './dialect.ts'
import { escapeXml, unescapeXml, xmpp } from './xmpp.ts'

test('text that was escaped once is read as it was', () => {
  expect(unescapeXml('&quot;a&quot; &amp;lt; &lt;b&gt; &apos;')).toBe('"a" &lt; <b> \'')
  expect(unescapeXml(escapeXml('a<b & "c" &amp;'))).toBe('a<b & "c" &amp;')
})

test('a stanza is judged by its sender, its receiver and its candidate', () => {
  const client = (id: string) => ({ id }) as Client
  const pair: Pair = { caller: client('a@host/x'), callee: client('b@host/x'), callUuid: 'call' }
  const stanza = (from: string, sent: object) => {
    const json = JSON.stringify({ call_uuid: 'call', candidate: sent }).replaceAll('"', '&quot;')
    return `<message to='b@host/x' from='${from}'><json xmlns='urn:xmpp:json:0'>${json}</json></message>`
  }
  expect(xmpp.wrongWith(stanza('a@host/x', candidate), pair, 'caller')).toBeNull()
  expect(xmpp.wrongWith(stanza('c@host/x', candidate), pair, 'caller')).toContain('somebody else')
  expect(xmpp.wrongWith(stanza('a@host/x', { ...candidate, sdpMid: '1' }), pair, 'caller')).toContain(
    'another candidate',
  )
  expect(xmpp.wrongWith('<iq type="error"/>', pair, 'caller')).toContain('<iq')
})
