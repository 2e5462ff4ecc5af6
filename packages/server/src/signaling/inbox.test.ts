import { beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Call } from '../call/call.ts'
import { createBacklog } from './backlog.ts'
import { Inbox, type InboxOwner, inboxLimits, type Message, underWayLimits } from './inbox.ts'

/** A message says what it is about, and the test when it is done: `a b:work`. */
const aboutOf = (text: string) => (text.split(':')[0] ?? '').split(' ').filter((it) => it !== '')
const callOf = (callUuid: string) =>
  ({ callUuid, caller: { userId: 'me', role: 'x' }, callee: { userId: 'peer', role: 'x' } }) as unknown as Call

let started: string[]
let finished: string[]
let under: Map<string, { message: Message; finish: () => void }>
let isOrdered: boolean
let early: string[]
let earlyAnswers: Map<string, boolean | Promise<boolean>>
let isNumbered: boolean
let room: number
let full: number
let idle: number
let paused: number

beforeEach(() => {
  started = []
  finished = []
  under = new Map()
  early = []
  earlyAnswers = new Map()
  isOrdered = false
  isNumbered = false
  room = Number.POSITIVE_INFINITY
  full = 0
  idle = 0
  paused = 0
})

function open(): Inbox {
  const owner: InboxOwner = {
    isNumbered,
    handle(message) {
      started.push(message.text)
      if (message.text.endsWith('now')) {
        finished.push(message.text)
        return undefined
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const finish = () => {
        under.delete(message.text)
        finished.push(message.text)
        resolve()
      }
      under.set(message.text, { message, finish })
      // A relay that is on its way: `a:9>`.
      if (message.text.endsWith('>')) message.isUnderWayAs(Number.parseInt(message.text.split(':')[1] ?? '', 10))
      // As its owner does: it is done when those before it are.
      return message.ahead === undefined ? promise : promise.then(() => message.ahead?.done)
    },
    hangUpOf: ({ text }) => (text.startsWith('!') ? text.slice(1) : undefined),
    doEarly({ text }) {
      early.push(text)
      return earlyAnswers.get(text) ?? true
    },
    aboutOf: ({ text }) => (isOrdered || text.startsWith('?') ? undefined : aboutOf(text)),
    hold(bytes) {
      if (bytes > room) return false
      room -= bytes
      return true
    },
    release(bytes) {
      room += bytes
    },
    onFull: () => void full++,
    onPaused: () => void paused++,
    onIdle: () => void idle++,
  }
  return new Inbox(owner)
}
const take = (inbox: Inbox, ...texts: string[]) => texts.forEach((text) => void inbox.take(text, undefined))
const turn = () => Bun.sleep(0)
async function finish(text: string): Promise<void> {
  under.get(text)?.finish()
  await turn()
}
async function waits(text: string, callUuid: string): Promise<void> {
  under.get(text)?.message.waitsFor(callOf(callUuid))
  await turn()
}

test('[ORD1] one after another, whatever they are about', async () => {
  const inbox = open()
  take(inbox, 'a:1', 'b:2', 'c:now', 'a:3')
  expect(started).toEqual(['a:1'])
  await finish('a:1')
  expect(started).toEqual(['a:1', 'b:2'])
  await finish('b:2')
  expect(started).toEqual(['a:1', 'b:2', 'c:now', 'a:3'])
  await finish('a:3')
  expect([inbox.isBusy, idle > 0]).toEqual([false, true])
})

test('[ORD1] [ORD3] all wait for what comes before them, also where that fails', async () => {
  const inbox = open()
  const first = Promise.withResolvers<void>()
  inbox.begin(first.promise)
  take(inbox, 'a:now', 'b:now')
  expect([started, inbox.isBusy]).toEqual([[], true])
  first.reject(new Error('a bug'))
  await turn()
  expect(finished).toEqual(['a:now', 'b:now'])
})

describe('[ORD1] while a relay is on its way', () => {
  const aheadOf = (text: string) => under.get(text)?.message.ahead?.n

  test('the next message has its turn, and knows of the last one that is on its way', async () => {
    const inbox = open()
    take(inbox, 'a:1>', 'a:3>', 'b:4')
    expect(started).toEqual(['a:1>', 'a:3>', 'b:4'])
    expect(started.map(aheadOf)).toEqual([undefined, 1, 3])
    // This one is not a relay: later messages wait for it.
    take(inbox, 'a:5>')
    expect(started).toHaveLength(3)
    await finish('b:4')
    expect(started).toHaveLength(3)
    await finish('a:3>')
    await finish('a:1>')
    expect(started.at(-1)).toBe('a:5>')
    expect([aheadOf('a:5>'), inbox.isBusy]).toEqual([undefined, true])
    idle = 0
    await finish('a:5>')
    expect([inbox.isBusy, idle]).toEqual([false, 1])
  })

  test('[EXT4] relays of a socket are numbered one by one, and not where its client does that', () => {
    const [inbox, other] = [open(), open()]
    take(inbox, 'a:1', 'a:2')
    take(other, 'b:1')
    const next = (text: string) => under.get(text)?.message.nextNumber()
    expect([next('a:1'), next('a:1'), next('b:1'), next('a:1')]).toEqual([1, 2, 1, 3])
    isNumbered = true
    take(open(), 'c:1')
    expect(next('c:1')).toBeUndefined()
  })

  test('one that is answered late is waited for', async () => {
    const inbox = open()
    take(inbox, 'a:1>', 'a:2>')
    await finish('a:2>')
    take(inbox, 'a:3>')
    // Its answer is there, and it is not done before the one ahead of it.
    expect(aheadOf('a:3>')).toBe(2)
    await finish('a:1>')
    await finish('a:3>')
    expect(inbox.isBusy).toBe(false)
  })

  test('so many are on their way at once, and of so many bytes', async () => {
    const { messages, bytes } = underWayLimits
    const many = open()
    for (let n = 1; n <= messages + 2; n++) take(many, `a:${n}>`)
    // The last one has its turn until it is answered.
    expect(started).toHaveLength(messages + 1)
    for (let n = 1; n <= messages + 2; n++) await finish(`a:${n}>`)
    expect([started.length, many.isBusy]).toEqual([messages + 2, false])
    const long = open()
    started = []
    const pad = ' '.repeat(bytes)
    take(long, `a:1${pad}>`, 'a:2>', 'a:3>')
    expect(started).toHaveLength(2)
    await finish(`a:1${pad}>`)
    await finish('a:2>')
    expect(started).toHaveLength(3)
  })
})

describe('[ORD1] [PLACE4] while one waits for a sign of life', () => {
  test('others go on, and what is about the same call comes after it, in order', async () => {
    const inbox = open()
    take(inbox, 'a:1', 'b:2', 'a:3', 'a:4', 'c:5')
    await waits('a:1', 'a')
    expect(started).toEqual(['a:1', 'b:2'])
    await finish('b:2')
    expect(started).toEqual(['a:1', 'b:2', 'c:5'])
    await finish('c:5')
    take(inbox, 'd:now')
    expect(started).toEqual(['a:1', 'b:2', 'c:5', 'd:now'])
    expect(inbox.isBusy).toBe(true)
    await finish('a:1')
    expect(started.slice(4)).toEqual(['a:3'])
    await finish('a:3')
    expect(started.slice(4)).toEqual(['a:3', 'a:4'])
  })

  test('what waits behind it holds back what is about the same as this', async () => {
    const inbox = open()
    take(inbox, 'a:1', 'a new:2', 'new:3', 'b:4')
    await waits('a:1', 'a')
    expect(started).toEqual(['a:1', 'b:4'])
    await finish('b:4')
    await finish('a:1')
    await finish('a new:2')
    expect(started).toEqual(['a:1', 'b:4', 'a new:2', 'new:3'])
  })

  test('an invite of the peer of that call comes after it', async () => {
    const inbox = open()
    take(inbox, 'a:1', 'x\0peer:2', 'x\0other:3')
    await waits('a:1', 'a')
    expect(started).toEqual(['a:1', 'x\0other:3'])
  })

  test('several wait, each for another call; what is about both comes after both', async () => {
    const inbox = open()
    take(inbox, 'a:1')
    await waits('a:1', 'a')
    take(inbox, 'b:2', 'a b:3', 'a:4')
    under.get('b:2')?.message.waitsFor({ ...callOf('b'), caller: {}, callee: {} } as unknown as Call)
    await turn()
    await finish('a:1')
    expect(started).toEqual(['a:1', 'b:2'])
    await finish('b:2')
    expect(started).toEqual(['a:1', 'b:2', 'a b:3'])
    await finish('a b:3')
    expect(started.at(-1)).toBe('a:4')
  })

  test('whose turn it is again is not held up by what waits behind it for another one, too', async () => {
    const inbox = open()
    take(inbox, 'a:1')
    await waits('a:1', 'a')
    take(inbox, 'b:2')
    under.get('b:2')?.message.waitsFor({ ...callOf('b'), caller: {}, callee: {} } as unknown as Call)
    await turn()
    take(inbox, 'a:3', 'a b:4')
    await finish('a:1')
    expect(started).toEqual(['a:1', 'b:2', 'a:3'])
    await finish('a:3')
    expect(started).toHaveLength(3)
    await finish('b:2')
    expect(started.at(-1)).toBe('a b:4')
  })

  test('those that come back one after another keep the order in which they came', async () => {
    const inbox = open()
    take(inbox, 'a:1', 'a:2', 'b:3', 'a b:4', ':5')
    await waits('a:1', 'a')
    under.get('b:3')?.message.waitsFor({ ...callOf('b'), caller: {}, callee: {} } as unknown as Call)
    await turn()
    await finish('a:1')
    await finish('b:3')
    await finish(':5')
    await finish('a:2')
    expect(started).toEqual(['a:1', 'b:3', ':5', 'a:2', 'a b:4'])
  })

  test('what is no request overtakes nothing, and holds up nothing', async () => {
    const inbox = open()
    take(inbox, 'a:1')
    await waits('a:1', 'a')
    take(inbox, '?:now', 'b:now')
    expect(finished).toEqual(['b:now'])
    await finish('a:1')
    expect(finished).toEqual(['b:now', 'a:1', '?:now'])
  })

  test('where nothing may overtake, all wait', async () => {
    isOrdered = true
    const inbox = open()
    take(inbox, 'a:1', 'b:2')
    await waits('a:1', 'a')
    expect(started).toEqual(['a:1'])
    await finish('a:1')
    expect(started).toEqual(['a:1', 'b:2'])
  })
})

describe('[HOOK5] while one waits for somebody outside', () => {
  const outside = (text: string, callUuid?: string) => under.get(text)?.message.waitsOutside(callUuid) as AbortSignal

  test('what is about something else overtakes it, and what is about the same comes after it', async () => {
    const inbox = open()
    take(inbox, 'a:1', 'b:now', 'a:2')
    const signal = outside('a:1')
    await turn()
    take(inbox, 'c:now')
    expect(finished).toEqual(['b:now', 'c:now'])
    expect([started, signal.aborted, early]).toEqual([['a:1', 'b:now', 'c:now'], false, []])
    await finish('a:1')
    expect(started.at(-1)).toBe('a:2')
  })

  test('who hangs up its call is heard at once, and has its turn after it', async () => {
    const inbox = open()
    take(inbox, 'a:1')
    const signal = outside('a:1', '!a')
    await turn()
    take(inbox, '!b')
    expect(signal.aborted).toBe(false)
    take(inbox, '!!a')
    expect(signal.aborted).toBe(true)
  })

  test('a client that is gone for good hangs up', () => {
    const inbox = open()
    take(inbox, 'a:1')
    const signal = outside('a:1')
    inbox.giveUp()
    expect(signal.aborted).toBe(true)
  })

  describe('in an extended session', () => {
    beforeEach(() => {
      isOrdered = true
      isNumbered = true
    })

    test('what comes is done early, and has its turn later; also what waited already', async () => {
      const inbox = open()
      take(inbox, 'a:1', 'b:now')
      outside('a:1')
      take(inbox, 'c:now', 'a:2')
      await turn()
      expect([early, started]).toEqual([['b:now', 'c:now', 'a:2'], ['a:1']])
      await finish('a:1')
      await turn()
      expect(started).toEqual(['a:1', 'b:now', 'c:now', 'a:2'])
      take(inbox, 'd:3')
      await finish('a:2')
      expect([early.length, started.at(-1), inbox.isBusy]).toEqual([3, 'd:3', true])
    })

    test('one after another; after one that fails, the next ones wait for their turn', async () => {
      const inbox = open()
      const { promise, resolve } = Promise.withResolvers<boolean>()
      earlyAnswers = new Map<string, boolean | Promise<boolean>>([
        ['b:now', promise],
        ['c:now', false],
      ])
      take(inbox, 'a:1')
      outside('a:1')
      take(inbox, 'b:now', 'c:now', 'd:now')
      await turn()
      expect(early).toEqual(['b:now'])
      await finish('a:1')
      // Nothing has its turn before what was done early is over.
      expect([started, inbox.isBusy]).toEqual([['a:1'], true])
      resolve(true)
      await turn()
      expect(early).toEqual(['b:now', 'c:now'])
      expect(started).toEqual(['a:1', 'b:now', 'c:now', 'd:now'])
      expect(inbox.isBusy).toBe(false)
    })

    test('[EXT4] of what is dropped, only what was done early has its turn', async () => {
      earlyAnswers = new Map([['c:now', false]])
      const inbox = open()
      take(inbox, 'a:1')
      outside('a:1')
      take(inbox, 'b:now', 'c:now', 'd:now')
      inbox.drop()
      await finish('a:1')
      await turn()
      expect([early, started, inbox.isBusy]).toEqual([['b:now', 'c:now'], ['a:1', 'b:now'], false])
    })

    test('nothing is done early for a client that may be gone', async () => {
      const inbox = open()
      take(inbox, 'a:1')
      outside('a:1')
      inbox.pause()
      take(inbox, 'b:now')
      inbox.resume()
      take(inbox, 'c:now')
      await turn()
      expect(early).toEqual([])
    })
  })
})

test('[ORD1] while it is paused nobody’s turn comes, and what is under way goes on', async () => {
  const inbox = open()
  take(inbox, 'a:1', 'b:2')
  inbox.pause()
  take(inbox, 'c:now')
  expect(paused).toBe(1)
  await finish('a:1')
  expect([started, paused]).toEqual([['a:1'], 2])
  inbox.resume()
  await finish('b:2')
  expect(started).toEqual(['a:1', 'b:2', 'c:now'])
})

test('[EXT4] what is dropped takes no effect, and its bytes are given back', async () => {
  room = 100
  const inbox = open()
  take(inbox, 'a:1')
  await waits('a:1', 'a')
  take(inbox, 'a:2', 'b:3', 'c:4')
  inbox.drop()
  await finish('a:1')
  await finish('b:3')
  expect([started, room, inbox.isBusy]).toEqual([['a:1', 'b:3'], 100, false])
})

describe('[ORD1] what may wait has a bound', () => {
  test('512 messages', () => {
    const inbox = open()
    inbox.begin(new Promise(() => {}))
    for (let i = 0; i < inboxLimits.messages; i++) take(inbox, 'a:1')
    expect(full).toBe(0)
    take(inbox, 'a:1')
    expect(full).toBe(1)
  })

  test('256 KiB, also of those that stepped aside', async () => {
    const large = (what: string) => `${what}:${'x'.repeat(64 * 1024 - 2)}`
    const inbox = open()
    inbox.begin(new Promise(() => {}))
    for (let i = 0; i < 4; i++) take(inbox, large('a'))
    expect(full).toBe(0)
    take(inbox, 'a')
    expect(full).toBe(1)

    full = 0
    const other = open()
    for (const what of ['a', 'b', 'c', 'd']) {
      take(other, large(what))
      await waits(large(what), what)
    }
    expect(full).toBe(0)
    take(other, 'a:1')
    expect(full).toBe(1)
  })

  test('what the participant has on all its sockets', () => {
    room = 10
    const inbox = open()
    inbox.begin(new Promise(() => {}))
    take(inbox, 'a:345')
    take(inbox, 'a:345')
    expect([full, room]).toEqual([0, 0])
    take(inbox, 'a')
    expect(full).toBe(1)
    inbox.drop()
    expect(room).toBe(10)
  })
})

test('the backlog of a participant is its own, and nothing is left of it', () => {
  const backlog = createBacklog(100)
  expect(backlog.add('ann', 60)).toBe(true)
  expect(backlog.add('ann', 41)).toBe(false)
  expect(backlog.add('ben', 100)).toBe(true)
  backlog.remove('ann', 60)
  expect(backlog.add('ann', 100)).toBe(true)
})

/** What a client does, and what becomes of it, in any order. */
type Step = { do: 'send'; about: string[] } | { do: 'wait' | 'finish'; which: number }
const letter = fc.constantFrom('a', 'b', 'c', 'd')
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('send' as const), about: fc.uniqueArray(letter, { maxLength: 2 }) }),
  fc.record({ do: fc.constantFrom('wait' as const, 'finish' as const), which: fc.nat() }),
)

test('[ORD1] whatever waits: each message once, those about the same in order, and nothing is held at the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      started = []
      finished = []
      under = new Map()
      room = 1_000_000
      const inbox = open()
      const sent: string[] = []
      const waiting = new Set<string>()
      /** Before the earlier one of two about the same is done the later one does not begin. */
      const check = () => {
        for (const text of started) {
          const earlier = sent.slice(0, sent.indexOf(text)).filter((it) => !finished.includes(it))
          for (const it of earlier) {
            if (under.has(text) || finished.at(-1) === text) {
              const shares = aboutOf(it).some((subject) => aboutOf(text).includes(subject))
              expect([it, text, shares]).toEqual([it, text, false])
            }
          }
        }
        // At most one is under way that waits for nobody.
        expect([...under.keys()].filter((text) => !waiting.has(text)).length).toBeLessThanOrEqual(1)
      }
      for (const each of steps) {
        const open = [...under.keys()]
        if (each.do === 'send') {
          const text = `${each.about.join(' ')}:${sent.length}`
          sent.push(text)
          take(inbox, text)
        } else if (open.length > 0) {
          const text = open[each.which % open.length]!
          if (each.do === 'finish') await finish(text)
          else {
            waiting.add(text)
            under.get(text)?.message.waitsFor({ callUuid: aboutOf(text)[0] ?? '-', caller: {}, callee: {} } as Call)
            await turn()
          }
        }
        check()
      }
      for (let rounds = 0; under.size > 0 && rounds < 100; rounds++) {
        await finish([...under.keys()][0]!)
        check()
      }
      expect(finished.toSorted()).toEqual(sent.toSorted())
      expect([inbox.isBusy, room, full]).toEqual([false, 1_000_000, 0])
    }),
    { numRuns: 1000 },
  )
})
