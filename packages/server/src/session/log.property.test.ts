import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Push } from '../ports/push.ts'
import { type LogEntry, SessionLog } from './log.ts'

/** The log beside a plain list that does the same without any care for speed. */

const calls = ['c', 'd'] as const
const push = fc.record<Push>({
  kind: fc.constantFrom('relay', 'state', 'final'),
  call: fc.constantFrom(...calls),
  version: fc.constant(undefined),
  text: fc.oneof(fc.constant(''), fc.constant('x'.repeat(1_000)), fc.constant('x'.repeat(60_000))),
})
type Step =
  | { readonly what: 'append' | 'appendWaiting'; readonly push: Push; readonly times: number }
  | { readonly what: 'prove'; readonly share: number; readonly keeps: boolean }
  | { readonly what: 'take' | 'retain'; readonly call: (typeof calls)[number] }

const steps = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({
    what: fc.constantFrom('append', 'appendWaiting'),
    push,
    times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 300 })),
  }),
  fc.record({ what: fc.constant('prove' as const), share: fc.nat({ max: 100 }), keeps: fc.boolean() }),
  fc.record({ what: fc.constantFrom('take', 'retain'), call: fc.constantFrom(...calls) }),
)

const bytesOf = (entries: readonly LogEntry[]) => entries.reduce((sum, entry) => sum + entry.push.text.length, 0)

class PlainLog {
  entries: LogEntry[] = []
  last = 0
  proven = 0

  add(push: Push) {
    this.last++
    this.entries = [...this.entries, { seq: this.last, push, at: this.last, bytes: push.text.length }]
  }
  append(push: Push) {
    this.add(push)
    while (this.entries.length > 512 || bytesOf(this.entries) > 1024 * 1024) this.entries = this.entries.slice(1)
    return this.last
  }
  appendWaiting(push: Push) {
    const full = this.entries.length >= 256 || bytesOf(this.entries) + push.text.length > 256 * 1024
    if (full && push.kind === 'relay') return undefined
    this.add(push)
    return this.last
  }
  keep(passes: (entry: LogEntry) => boolean) {
    this.entries = this.entries.filter(passes)
  }
}

function run(log: SessionLog, plain: PlainLog, step: Step): void {
  switch (step.what) {
    case 'append':
    case 'appendWaiting':
      for (let i = 0; i < step.times; i++) {
        expect(log[step.what](step.push, plain.last + 1)).toBe(plain[step.what](step.push) as never)
      }
      return
    case 'prove': {
      const seq = Math.floor((plain.last * step.share) / 100)
      const keep = step.keeps ? ['c'] : []
      log.prove(seq, keep)
      plain.proven = Math.max(plain.proven, seq)
      plain.keep((entry) => entry.seq > plain.proven || keep.includes(entry.push.call))
      return
    }
    case 'take': {
      const matches = ({ push }: LogEntry) => push.call === step.call
      const expected = plain.entries.filter(matches)
      expect(log.find(matches)).toEqual(expected)
      expect(log.take(matches)).toEqual(expected)
      plain.keep((entry) => !matches(entry))
      return
    }
    case 'retain':
      log.retain(({ push }) => push.call === step.call)
      plain.keep(({ push }) => push.call === step.call)
      return
  }
}

test('[RES1] [REL2] [PLACE5] it holds what a plain list would hold, under the same numbers', () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 40 }), (all) => {
      const log = new SessionLog()
      const plain = new PlainLog()
      for (const step of all) {
        run(log, plain, step)
        expect([log.size, log.last]).toEqual([plain.entries.length, plain.last])
        expect(log.all()).toEqual(plain.entries)
      }
    }),
    { numRuns: 150 },
  )
})

test('[RES2] it reaches back as far as nothing is missing', () => {
  const log = new SessionLog()
  const reaches = (...seqs: number[]) => seqs.map((seq) => log.reachesBackTo(seq))
  expect(reaches(-1, 0, 1, Number.NaN)).toEqual([false, true, false, false])
  const relay: Push = { kind: 'relay', call: 'c', version: undefined, text: '{}' }
  for (let i = 0; i < 600; i++) log.append(relay, 0)
  expect(reaches(0, 87, 88, 600, 601)).toEqual([false, false, true, true, false])
  log.prove(600)
  expect(reaches(88, 599, 600, 601)).toEqual([false, false, true, false])
})
