import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Call, callKey, type LiveCall, type RingingCall } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import { accepted, created, ended, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import type { CallSteps } from '../../src/ports/call-store.ts'
import { type Left, type LeftRow, leaseMs, type Outbox, ownMs } from '../../src/ports/outbox.ts'

/** What the suite needs of an adapter besides its ports. */
export interface OutboxHarness {
  store(): CallSteps
  outbox(): Outbox
  /** The outbox as another one sees it who may claim at the same time. */
  other(): Outbox
  /** Writes a step as another process would, unknown to the store. */
  forge(step: Step): Promise<void>
  /** How many rows are there. */
  rows(): Promise<number>
  /** Lets this many ms pass for the rows that wait in the outbox. */
  pass(ms: number): Promise<void>
  /** Removes a call as a version does that knows no outbox. */
  dropCall(call: Call): Promise<void>
  /** Leaves the last step of `count` new calls there. */
  fill(count: number): Promise<void>
  /** Closes the store and opens it again on the same data; what is done in between has it for itself. */
  reopen(between?: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export interface OutboxProcessHarness extends OutboxHarness {
  /** How `outbox-child.ts` opens the same data. */
  child(): readonly [kind: string, target: string]
}

const all = 100_000

/** What every adapter of Outbox guarantees. */
export function registerOutboxContract(name: string, open: () => Promise<OutboxHarness>): void {
  describe(`${name}: Outbox`, () => {
    let harness: OutboxHarness
    const outbox = () => harness.outbox()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())
    beforeEach(async () => {
      await harness.pass(leaseMs)
      await outbox().remove(rowsOf(await outbox().claim(all)))
      expect(await harness.rows()).toBe(0)
    })

    const write = async (call: Call | undefined, step: Step): Promise<Step> => {
      await harness.store().transition(call ?? step.call, () => ({ steps: [step] }))
      return step
    }
    const add = async (): Promise<RingingCall> => {
      const call = ringing()
      await write(undefined, created(call))
      return call
    }
    const rowOf = (step: Step): number => {
      const row = outbox().rowOf(step)
      if (row === undefined) throw new Error('The step has no row.')
      return row
    }

    test('a step has its row, and loses it when everybody was told', async () => {
      const first = await write(undefined, created(ringing()))
      const second = await write(first.call, touched(first.call, 's'))
      expect(await harness.rows()).toBe(2)
      await outbox().remove([rowOf(first)])
      await harness.pass(ownMs)
      expect(namesOf(await outbox().claim(all))).toEqual([nameOf(second)])
      await outbox().remove([rowOf(first), rowOf(second)])
      expect(await harness.rows()).toBe(0)
      await outbox().remove([])
    })

    test('what is not written has none: a refusal, a guard that failed, a transition of which one step was refused', async () => {
      const [call, other] = [await add(), await add()]
      await harness.forge(touched(call, 'forged'))
      expect(await harness.rows()).toBe(3)
      const refused: Step[] = []
      await harness.store().transition(other, (now) => {
        if (refused.length > 0) return { steps: [] }
        refused.push(touched(there(now), 'x'))
        return { steps: [...refused, touched(call, 'y')] }
      })
      expect(refused.map((step) => outbox().rowOf(step))).toEqual([undefined])
      expect(await harness.rows()).toBe(3)
    })

    test('each step of a large batch has its own, also between transitions that were refused', async () => {
      const pairs = await Promise.all(Array.from({ length: 80 }, () => Promise.all([add(), add()])))
      const forged = pairs.filter((_, index) => index % 7 === 3)
      for (const [, second] of forged) await harness.forge(touched(second, 'forged'))
      const tried = new Map<string, Step[]>()
      await Promise.all(
        pairs.map(([first, second]) =>
          harness.store().transition(first, (now) => {
            // Its guard failed.
            if (tried.has(callKey(first))) return { steps: [] }
            const steps = [touched(there(now), 'a'), touched(second, 'b')]
            tried.set(callKey(first), steps)
            return { steps }
          }),
        ),
      )
      await harness.pass(ownMs)
      const left = await outbox().claim(all)
      expect(left.length).toBe(160 + forged.length + 2 * (80 - forged.length))
      const written = new Map(left.map((one) => [one.row, nameOf(one)]))
      const isForged = (steps: readonly Step[]) => forged.some(([first]) => first.callUuid === steps[0]?.call.callUuid)
      for (const steps of tried.values()) {
        for (const step of steps) {
          if (isForged(steps)) expect(outbox().rowOf(step)).toBeUndefined()
          else expect(written.get(rowOf(step))).toBe(nameOf(step))
        }
      }
    })

    test('what is left of a call is known, whoever is at it', async () => {
      const first = await write(undefined, created(ringing()))
      const second = await write(first.call, touched(first.call, 's'))
      const other = await add()
      const [one, two] = [first, second].map((step) => ({ row: rowOf(step), version: step.call.version }))
      expect(await outbox().leftOf(first.call)).toEqual([one, two] as LeftRow[])
      await harness.pass(ownMs)
      await harness.other().claim(all)
      expect(await harness.other().leftOf(first.call)).toEqual([one, two] as LeftRow[])
      await outbox().remove([rowOf(first)])
      expect(await outbox().leftOf(first.call)).toEqual([two] as LeftRow[])
      expect(await outbox().leftOf({ ...other, product: 'another' })).toEqual([])
      await outbox().remove([rowOf(second)])
      expect(await harness.other().leftOf(first.call)).toEqual([])
    })

    test('for two seconds it is left to who committed it, then one who claims gets it', async () => {
      const step = await write(undefined, created(ringing()))
      expect(await outbox().claim(all)).toEqual([])
      await harness.pass(ownMs - 500)
      expect(await harness.other().claim(all)).toEqual([])
      await harness.pass(500)
      const [left, ...more] = await harness.other().claim(all)
      expect(left).toEqual({
        row: rowOf(step),
        version: 1,
        call: { product: step.call.product, callUuid: step.call.callUuid, endedAt: null },
      })
      expect(more).toEqual([])
      expect(await outbox().claim(all)).toEqual([])
    })

    test('who dies with a claim leaves it to the next one, after the lease', async () => {
      const step = await write(undefined, created(ringing()))
      await harness.pass(ownMs)
      expect(namesOf(await harness.other().claim(all))).toEqual([nameOf(step)])
      await harness.pass(leaseMs - 500)
      expect(await outbox().claim(all)).toEqual([])
      await harness.pass(500)
      expect(namesOf(await outbox().claim(all))).toEqual([nameOf(step)])
      expect(await harness.rows()).toBe(1)
    })

    test('what is given back is free after so many ms', async () => {
      await add()
      await harness.pass(ownMs)
      const claimed = rowsOf(await outbox().claim(all))
      await outbox().release(claimed, 0)
      expect(rowsOf(await outbox().claim(all))).toEqual(claimed)
      await outbox().release(claimed, 400)
      expect(await outbox().claim(all)).toEqual([])
      await harness.pass(400)
      expect(rowsOf(await outbox().claim(all))).toEqual(claimed)
      await outbox().release([], 0)
    })

    test('of one call none is claimed while an older one is somebody else’s; other calls go on', async () => {
      const [call, other] = [await add(), await add()]
      const answer = await write(call, accepted(call))
      const end = await write(answer.call, ended(answer.call as LiveCall))
      await harness.pass(ownMs)
      const [first] = await outbox().claim(1)
      expect(first && nameOf(first)).toBe(nameOf(created(call)))
      expect(namesOf(await harness.other().claim(all))).toEqual([nameOf(created(other))])
      await outbox().remove(first ? [first.row] : [])
      const rest = await harness.other().claim(all)
      expect(namesOf(rest)).toEqual([nameOf(answer), nameOf(end)])
      expect(rest[0]?.call?.endedAt).toBe((end.call as { endedAt?: number }).endedAt as number)
    })

    test('a step that its process may still be telling keeps back the later ones of its call', async () => {
      const call = await add()
      await harness.pass(ownMs - 500)
      await write(call, accepted(call))
      await harness.pass(500)
      expect((await outbox().claim(all)).map(({ version }) => version)).toEqual([1])
      await harness.pass(ownMs)
      expect(await outbox().claim(all)).toEqual([])
    })

    test('two that claim at once never get the same, and together they get all', async () => {
      await harness.fill(400)
      await harness.pass(ownMs)
      const got: Left[] = []
      for (let round = 0; round < 20; round++) {
        const both = await Promise.all([outbox().claim(30), harness.other().claim(30)])
        got.push(...both.flat())
      }
      expect(got.length).toBe(400)
      expect(new Set(rowsOf(got)).size).toBe(400)
    })

    test('ten thousand that were left over are worked off in small batches, each once', async () => {
      await harness.fill(10_000)
      await harness.reopen()
      await harness.pass(ownMs)
      const seen = new Set<number>()
      const work = async (from: Outbox) => {
        for (;;) {
          const claimed = await from.claim(200)
          if (claimed.length === 0) return
          expect(claimed.length).toBeLessThanOrEqual(200)
          for (const { row } of claimed) {
            expect(seen.has(row)).toBe(false)
            seen.add(row)
          }
          await from.remove(rowsOf(claimed))
        }
      }
      await Promise.all([work(outbox()), work(harness.other())])
      expect(seen.size).toBe(10_000)
      expect(await harness.rows()).toBe(0)
    }, 240_000)

    test('it outlives the process that wrote it', async () => {
      const call = await add()
      const step = await write(call, accepted(call))
      await harness.reopen()
      await harness.pass(ownMs)
      expect(outbox().rowOf(step)).toBeUndefined()
      expect((await outbox().claim(all)).map(({ version }) => version)).toEqual([1, 2])
    })

    test('where the call is not stored any more that is said', async () => {
      const call = await add()
      await harness.dropCall(call)
      await harness.pass(ownMs)
      const left = await outbox().claim(all)
      expect(left.map((one) => one.call)).toEqual([undefined])
      await outbox().remove(rowsOf(left))
      expect(await harness.rows()).toBe(0)
    })

    test('says when the oldest step was made', async () => {
      expect(await outbox().oldest()).toBeUndefined()
      const first = { call: ringing(), event: { ...created(ringing()).event, at: 5_000 } }
      await write(undefined, first)
      await write(undefined, created(ringing()))
      expect(await outbox().oldest()).toBe(5_000)
      await outbox().remove([rowOf(first)])
      expect(await outbox().oldest()).toBe(1_000_000)
    })
  })
}

/** What every adapter of Outbox guarantees that another process can open, too. */
export function registerOutboxProcessContract(name: string, open: () => Promise<OutboxProcessHarness>): void {
  describe(`${name}: Outbox of a process that is killed`, () => {
    let harness: OutboxProcessHarness
    const outbox = () => harness.outbox()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    test('after kill -9 what was committed and not told is left, and nothing else', async () => {
      const lines: string[] = []
      await harness.reopen(async () => {
        const child = Bun.spawn(
          [process.execPath, new URL('outbox-child.ts', import.meta.url).pathname, ...harness.child()],
          {
            stdout: 'pipe',
            stderr: 'inherit',
          },
        )
        let text = ''
        for await (const chunk of child.stdout) {
          text += new TextDecoder().decode(chunk)
          if (text.split('\n').length > 600) child.kill('SIGKILL')
        }
        await child.exited
        lines.push(...text.split('\n').slice(0, -1))
      })
      const said = (word: string) =>
        lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
      const told = new Set(said('told'))
      await harness.pass(ownMs)
      const left = await outbox().claim(all)
      const names = new Set(namesOf(left))
      expect(told.size).toBeGreaterThan(50)
      for (const name of told) expect(names.has(name)).toBe(false)
      for (const name of said('committed')) if (!told.has(name)) expect(names.has(name) || isFirst(name)).toBe(true)
      // The row without its step, or twice, would be another commit.
      expect(names.size).toBe(left.length)
      for (const { call, version } of left) {
        if (call === undefined) throw new Error('A row without a call.')
        const steps = await harness.store().stepsAfter(call, version - 1)
        expect(steps[0]?.call.version).toBe(version)
      }
    }, 240_000)
  })
}

export const rowsOf = (left: readonly Left[]) => left.map(({ row }) => row)
const namesOf = (left: readonly Left[]) => left.map(nameOf)

/** Of the first version: it may have been delivered when the process died, before it could say so. */
const isFirst = (name: string) => name.endsWith(' 1')

function nameOf(one: Left | Step): string {
  if ('row' in one) return `${one.call?.callUuid} ${one.version}`
  return `${one.call.callUuid} ${one.call.version}`
}
