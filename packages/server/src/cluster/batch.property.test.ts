import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Answer, addAnswer, type Message, readBatch, writeBatch } from './batch.ts'
import { pushIn, relayFrame } from './frames.ts'

const relay = fc
  .record({
    kind: fc.constantFrom('relay' as const, 'media' as const),
    call: fc.string(),
    // What a client sent, as one line of JSON: with line ends, quotes and half pairs in it.
    text: fc.string({ unit: 'binary' }).map((sdp) => JSON.stringify({ event: 'webrtc.offer', data: { sdp } })),
    n: fc.nat(),
    after: fc.option(fc.nat(), { nil: undefined }),
  })
  .map(({ n, after, ...push }) => {
    const source = { sessionId: 'sender', n, after }
    return { ...push, version: undefined, source, forPlace: true, saveFirst: true } as const
  })
const other = fc.constantFrom<Message>([1, ['heard']], [0, ['told', 'relay', 3]], [[4, 7], null, { ok: 'sent' }])
const item = fc.oneof(relay, other)

test('relays and what goes with them arrive as they were sent, and in order', () => {
  fc.assert(
    fc.property(fc.array(item), (items) => {
      const messages = items.map((each, i): Message => ('kind' in each ? [i, relayFrame('receiver', each)!] : each))
      const read = readBatch(Buffer.from(writeBatch({ from: 'a', n: 8, messages })))
      expect(read).toEqual({ from: 'a', n: 8, messages })
      const pushes = read.messages.flatMap(([, frame]) => (frame?.[0] === 'relay' ? [pushIn(frame)] : []))
      expect(pushes).toEqual(items.filter((each) => 'kind' in each))
    }),
  )
})

test('each question gets its own answer, also where those to others are the same', () => {
  const answer = fc.constantFrom<Answer>(
    ...[{ ok: 'sent' }, { ok: 'kept' }, { ok: undefined }, { ok: false }, { ok: ['sent'] }],
    ...([{ failed: 'unknown', why: 'sent' }] as const),
  )
  fc.assert(
    fc.property(fc.array(answer), (answers) => {
      const messages: Message[] = []
      answers.forEach((each, id) => {
        addAnswer(messages, id, each)
      })
      const got: Answer[] = []
      for (const [ids, frame, each] of messages) if (frame === null) for (const id of ids) got[id] = each
      expect(got).toEqual(answers)
    }),
  )
})
