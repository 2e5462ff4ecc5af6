import { afterEach, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { until } from '@ringwire/testkit/patience'
import { created, ended, liveIn, participant, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { openHarness, type SqliteHarness, versionsOf } from '../../src/stores/sqlite/open.fixture.ts'
import type { ToWriter } from '../../src/stores/sqlite/write-worker.ts'
import type { Pragma } from './faulty-writer.ts'

type Fault = 'before' | 'after' | 'hang' | 'idle' | 'deaf' | 'none'

/** Writers with these faults, one after the other; then ones without. */
function writers(...faults: Fault[]) {
  const started: Worker[] = []
  const startWorker = () => {
    const worker = new Worker(new URL('./faulty-writer.ts', import.meta.url), {
      env: { ...Bun.env, FAULT: faults[started.length] ?? 'none' },
    })
    started.push(worker)
    return worker
  }
  return { started, startWorker }
}

/** A writer that notes what goes over to it. */
function watchedWriter() {
  const posted: ToWriter[] = []
  const startWorker = () => {
    const worker = new Worker(new URL('./faulty-writer.ts', import.meta.url))
    const post = worker.postMessage.bind(worker)
    worker.postMessage = (message: ToWriter) => {
      posted.push(message)
      post(message)
    }
    return worker
  }
  const batches = () => posted.filter((message) => !('type' in message))
  return { startWorker, batches }
}

let harness: SqliteHarness
afterEach(() => harness.close())
const store = () => harness.store()
const kindOf = (work: unknown) =>
  Promise.resolve(work).then(
    () => 'written' as const,
    (error: unknown) => (error instanceof StoreError ? error.kind : String(error)),
  )
const add = async (call = ringing()) => {
  await store().transition(call, () => ({ steps: [created(call)] }))
  return call
}
const touch = async (call: ReturnType<typeof ringing>, note: string) =>
  store().transition(call, (now) => ({ steps: [touched(there(now), note)] }))

describe('group commit', () => {
  test('a lone transition is posted before the call returns, what comes meanwhile goes together', async () => {
    const { startWorker, batches } = watchedWriter()
    harness = await openHarness({ startWorker })
    const calls = Array.from({ length: 20 }, () => ringing())
    const writing = calls.map((call, index) => {
      const work = store().transition(call, () => ({ steps: [created(call)] }))
      expect(batches().length).toBe(1)
      expect(work).toBeInstanceOf(Promise)
      return index === 0 ? Promise.resolve(work).then(() => expect(batches().length).toBe(2)) : work
    })
    await Promise.all(writing)
    expect(batches().length).toBe(2)
    expect(harness.stores().counts()).toEqual({ commits: 2, transitions: 20, writersStarted: 1 })
  })

  test('what needs no write takes no turn of the event loop', async () => {
    harness = await openHarness()
    const call = await add()
    expect(store().transition(call, () => ({ steps: [] }))).toEqual({ steps: [] })
    expect(store().load(call)).toEqual(call)
    expect(store().liveCallsOf(participant(call.caller.userId))).toEqual([call])
    expect(store().invite(participant('a'), participant('b'), crypto.randomUUID(), () => ({ steps: [] }))).toEqual({
      steps: [],
    })
  })

  test('a transition that the database refuses fails alone', async () => {
    harness = await openHarness()
    const calls = Array.from({ length: 9 }, (_, index) =>
      ringing(undefined, undefined, index === 4 ? { startedAt: Number.NaN } : {}),
    )
    const kinds = await Promise.all(
      calls.map((call) => kindOf(store().transition(call, () => ({ steps: [created(call)] })))),
    )
    expect(kinds.map((kind) => kind === 'written')).toEqual(calls.map((_, index) => index !== 4))
    expect(kinds[4]).toContain('refused')
    expect(store().load(calls[4] ?? ringing())).toBeUndefined()
  })
})

describe('a writer that fails', () => {
  test('dies before it wrote: unknown, and nothing is there', async () => {
    const { startWorker, started } = writers('before')
    harness = await openHarness({ startWorker })
    const call = ringing()
    expect(await kindOf(store().transition(call, () => ({ steps: [created(call)] })))).toBe('unknown')
    await add(call)
    expect(started.length).toBe(2)
    expect(versionsOf(harness.database, call.callUuid)).toEqual([1])
  })

  test('dies after it wrote: unknown, and what is there is decided on', async () => {
    const { startWorker } = writers('after')
    harness = await openHarness({ startWorker })
    const call = ringing()
    expect(await kindOf(store().transition(call, () => ({ steps: [created(call)] })))).toBe('unknown')
    const again = await store().transition(call, (now) => ({ seen: now, steps: [] }))
    expect(again.seen).toEqual(call)
    expect(await liveIn(store())).toEqual([call])
    expect(versionsOf(harness.database, call.callUuid)).toEqual([1])
  })

  test('what waits for the next commit goes to the next writer', async () => {
    const { startWorker } = writers('before')
    harness = await openHarness({ startWorker })
    const calls = Array.from({ length: 10 }, () => ringing())
    const kinds = await Promise.all(
      calls.map((call) => kindOf(store().transition(call, () => ({ steps: [created(call)] })))),
    )
    expect(kinds).toEqual(['unknown', ...Array.from({ length: 9 }, () => 'written' as const)])
    expect((await liveIn(store())).length).toBe(9)
  })

  test('the live set is read again before anything is decided', async () => {
    const { startWorker, started } = writers()
    harness = await openHarness({ startWorker })
    const [kept, over] = [await add(), await add()]
    await harness.forge(ended(over))
    const foreign = ringing()
    await harness.forge(created(foreign))
    started[0]?.terminate()
    await until('another writer has started', () => started.length === 2)
    const { seen } = await store().transition(kept, (now) => ({ seen: now, steps: [] }))
    expect(seen).toEqual(kept)
    const live = new Set((await liveIn(store())).map((call) => call.callUuid))
    expect(live).toEqual(new Set([kept.callUuid, foreign.callUuid]))
  })

  test('a commit past the time limit is unknown, and the service goes on', async () => {
    const { startWorker, started } = writers('hang')
    harness = await openHarness({ startWorker })
    const call = ringing()
    expect(await kindOf(store().transition(call, () => ({ steps: [created(call)] })))).toBe('unknown')
    await add(call)
    expect(started.length).toBe(2)
  })

  test('an errand past the time limit is unknown, too, and what comes meanwhile goes to the next writer', async () => {
    const { startWorker, started } = writers('idle')
    harness = await openHarness({ startWorker })
    const { products } = harness.stores()
    expect(await kindOf(products.revoke('somebody', 1, 2))).toBe('unknown')
    // The writer that was given up has not ended yet.
    expect(await kindOf(products.revoke('somebody', 1, 2))).toBe('written')
    expect(started.length).toBe(2)
  })

  test('errands wait for a writer that starts again, and are refused where none comes', async () => {
    const { startWorker, started } = writers('none', 'none', 'deaf')
    harness = await openHarness({ startWorker })
    await endWriter(started[0])
    expect(await kindOf(store().tryWrite())).toBe('written')
    expect(started.length).toBe(2)
    await endWriter(started[1])
    expect(await kindOf(store().tryWrite())).toBe('unavailable')
  })

  test('where no writer comes back, transitions are refused as unavailable, reads go on', async () => {
    const { startWorker } = writers('before', 'deaf')
    harness = await openHarness({ startWorker })
    const call = ringing()
    expect(await kindOf(store().transition(call, () => ({ steps: [created(call)] })))).toBe('unknown')
    const late = [kindOf(add()), kindOf(add()), kindOf(touch(call, 'x'))]
    expect(await Promise.all(late)).toEqual(['unavailable', 'unavailable', 'unavailable'])
    expect(await kindOf(add())).toBe('unavailable')
    expect(await kindOf(store().tryWrite())).toBe('unavailable')
    expect(await liveIn(store())).toEqual([])
  })

  test('dies again and again under load: what was acknowledged is there, nothing is there twice', async () => {
    const { startWorker, started } = writers()
    harness = await openHarness({ startWorker })
    const calls = await Promise.all(Array.from({ length: 50 }, () => add()))
    const acknowledged = new Map<string, number>()
    let unknown = 0
    let stop = false
    const drive = async (call: ReturnType<typeof ringing>) => {
      while (!stop) {
        const result = await touch(call, 'x').then(
          (decision) => decision.steps[0]?.call.version,
          () => undefined,
        )
        if (result === undefined) unknown++
        else acknowledged.set(call.callUuid, result)
      }
    }
    const driving = calls.map(drive)
    for (let round = 0; round < 5; round++) {
      const before = harness.commits()
      await until('ten more commits are written', () => harness.commits() > before + 10)
      started.at(-1)?.terminate()
    }
    const before = harness.commits()
    await until('ten more commits are written', () => harness.commits() > before + 10)
    stop = true
    await Promise.all(driving)
    expect(unknown).toBeGreaterThan(0)
    expect(harness.stores().counts().writersStarted).toBe(6)
    for (const call of calls) {
      const versions = versionsOf(harness.database, call.callUuid)
      expect(versions).toEqual(Array.from(versions, (_, index) => index + 1))
      expect(versions.length).toBeGreaterThanOrEqual(acknowledged.get(call.callUuid) ?? 1)
      expect((await store().load(call))?.version).toBe(versions.length)
    }
  })
})

describe('a disk', () => {
  test('that is full: unavailable, and nothing is written; with room again everything works', async () => {
    const { startWorker, started } = writers()
    harness = await openHarness({ startWorker })
    const call = await add()
    const limit = (pages: number) => pragma(started[0], `max_page_count = ${pages}`)
    limit(1)
    const big = Array.from({ length: 200 }, () =>
      ringing(undefined, undefined, { metadata: { text: 'x'.repeat(900) } }),
    )
    const kinds = await Promise.all(big.map((it) => kindOf(store().transition(it, () => ({ steps: [created(it)] })))))
    const refused = big.filter((_, index) => kinds[index] !== 'written')
    expect(new Set(kinds)).toContain('unavailable')
    expect(kinds).not.toContain('unknown')
    for (const it of refused) {
      expect(await store().load(it)).toBeUndefined()
      expect(versionsOf(harness.database, it.callUuid)).toEqual([])
    }
    expect(await store().load(call)).toEqual(call)
    limit(1_000_000)
    await store().tryWrite()
    for (const it of refused) await add(it)
    await touch(call, 'after')
    expect(versionsOf(harness.database, call.callUuid)).toEqual([1, 2])
    expect(harness.stores().counts().writersStarted).toBe(1)
  })

  test('[HEALTH1] that takes no write is found by the first look, and one that does by the next', async () => {
    const { startWorker, started } = writers()
    harness = await openHarness({ startWorker })
    pragma(started[0], 'query_only = ON')
    expect(await kindOf(store().tryWrite())).toBe('unavailable')
    pragma(started[0], 'query_only = OFF')
    expect(await kindOf(store().tryWrite())).toBe('written')
    expect(await kindOf(add())).toBe('written')
  })

  test('[HEALTH1] looking makes no file larger than its log gets between two checkpoints', async () => {
    harness = await openHarness()
    const size = (file: string) => statSync(file).size
    const before = size(harness.database)
    for (let i = 0; i < 1_500; i++) await store().tryWrite()
    expect(size(harness.database)).toBeLessThanOrEqual(before)
    expect(size(`${harness.database}-wal`)).toBeLessThan(1_100 * 4_200)
  })
})

/** Resolves when the store knows that the thread has ended. */
function endWriter(writer: Worker | undefined): Promise<unknown> {
  const ended = new Promise((resolve) => writer?.addEventListener('close', resolve))
  writer?.terminate()
  return ended
}

function pragma(writer: Worker | undefined, text: string): void {
  writer?.postMessage({ type: 'pragma', pragma: text } satisfies Pragma)
}
