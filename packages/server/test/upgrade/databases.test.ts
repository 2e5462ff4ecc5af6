import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { liveIn, overSince } from '../../src/ports/call-store.fixture.ts'
import type { ProductStore } from '../../src/ports/product-store.ts'
import { createProductAuth } from '../../src/products/product-auth.ts'
import { migrateToPostgres } from '../../src/stores/migration.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { keySecrets } from '../fixtures/calls-in-every-state.ts'
import { clockFrom } from '../fixtures/clock.ts'
import { loadPostgres, loadSqlite, readFixture, recordings } from '../fixtures/load.ts'
import { hex, type RecordedContent, recordPostgres, recordSqlite } from '../fixtures/record-databases.ts'
import { InProcessService } from '../support/in-process.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { answer, offer, recordOf, request } from '../support/sessions.ts'

/** What earlier versions have left behind, as it was recorded then: this build reads all of it, and goes on with it. */
let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

interface Kind {
  /** Puts the recording where a service of this data directory finds it; answers its settings. */
  load(dataDir: string, version: string): Promise<Record<string, string>>
}

const kinds: Record<'postgres' | 'sqlite', Kind> = {
  postgres: {
    async load(_, version) {
      const url = await server.database()
      await loadPostgres(url, version)
      return { DATABASE_URL: url }
    },
  },
  sqlite: {
    async load(dataDir, version) {
      loadSqlite(dataDir, version)
      return {}
    },
  },
}

/** A second after the recording: whatever was live then still is. */
const laterMs = 1000

for (const name of ['postgres', 'sqlite'] as const) {
  for (const version of recordings[name]) {
    const kind = kinds[name]
    describe(`${name} of ${version}`, () => {
      const content = JSON.parse(readFixture(version, `${name}.json`)) as RecordedContent
      const clock = clockFrom(content.recordedAt + laterMs)
      const statusesOf = (isLive: boolean) =>
        content.calls.flatMap(({ call }) => ('endedAt' in call === isLive ? [] : [call.status])).sort()
      let service: InProcessService
      let env: Record<string, string>

      beforeEach(async () => {
        env = {}
        service = new InProcessService(clock, env)
        Object.assign(env, await kind.load(service.dataDir, version))
      })
      afterEach(() => service.dispose())

      const open = () =>
        env.DATABASE_URL === undefined
          ? openSqlite({ dataDir: service.dataDir, synchronous: 'NORMAL', exclusive: true, clock })
          : openPostgres({ url: env.DATABASE_URL, clock })

      test('holds calls in every state', () => {
        expect(new Set(statusesOf(true))).toEqual(new Set(['ringing', 'accepted', 'connected']))
        expect(new Set(statusesOf(false))).toEqual(new Set(['ended', 'rejected', 'cancelled', 'missed', 'busy']))
      })

      test('is opened, and every call and event reads as it was written', async () => {
        const { calls, products, close } = await open()
        for (const { call, events } of content.calls) {
          expect(await calls.load(call)).toMatchObject(call)
          const steps = await calls.stepsAfter(call, 0)
          expect(steps.map((step) => ({ version: step.call.version, ...step.event }))).toMatchObject([...events])
        }
        const live = (await liveIn(calls)).map(({ status }) => status)
        const over = (await overSince(calls, 0)).map(({ call }) => call.status)
        expect([live.sort(), over.sort()]).toEqual([statusesOf(true), statusesOf(false)])
        const keys = await products.listKeys(content.recordedAt)
        expect(keys.map((key) => ({ ...key, secretHashes: key.secretHashes.map(hex) }))).toMatchObject([
          ...content.keys,
        ])
        expect(await products.listSettings()).toMatchObject([...content.settings])
        await checkSecrets(products, content.recordedAt)
        await close()
        await (await open()).close()
      })

      test('its live calls go on over sockets to a normal end; those that were over stay as they were', async () => {
        await service.start()
        for (const { call } of content.calls) {
          if (!('endedAt' in call)) await goOn(service, call)
        }
        for (const { call } of content.calls) {
          for (const wish of [wishOf(call.caller), wishOf(call.callee)]) {
            const record = await recordOf(service, wish, call.callUuid)
            const end = 'endedAt' in call ? [call.status, call.endReason] : ['ended', 'hangup']
            expect([record.status, record.end_reason]).toEqual(end)
            expect(Date.parse(record.started_at)).toBe(call.startedAt)
            if ('endedAt' in call) expect(Date.parse(record.ended_at)).toBe(call.endedAt)
          }
        }
        expect(service.log.split('\n').filter((line) => line.includes('"level":"error"'))).toEqual([])
      })
    })
  }
}

for (const version of recordings.sqlite) {
  test(`a data directory of ${version} is copied to PostgreSQL as it was written`, async () => {
    const content = JSON.parse(readFixture(version, 'sqlite.json')) as RecordedContent
    const dir = temporaryDataDir()
    try {
      loadSqlite(dir.path, version)
      const url = await server.database()
      const migrated = await migrateToPostgres({ dataDir: dir.path, url, now: Date.now(), onProgress: () => {} })
      expect(migrated).toMatchObject({ copied: true, calls: content.calls.length, keys: content.keys.length })
      const { calls, close } = await openPostgres({ url })
      for (const { call, events } of content.calls) {
        expect(await calls.load(call)).toMatchObject(call)
        const steps = await calls.stepsAfter(call, 0)
        expect(steps.map((step) => ({ version: step.call.version, ...step.event }))).toMatchObject([...events])
      }
      await close()
    } finally {
      dir.remove()
    }
  })
}

test('the recording of this build holds calls in every state with their events', async () => {
  for (const { content, sql } of [await recordSqlite(), await recordPostgres()]) {
    expect(new Set(content.calls.map(({ call }) => call.status)).size).toBe(8)
    expect(sql.split('INSERT INTO call_events').length).toBeGreaterThan(content.calls.length)
  }
})

async function checkSecrets(products: ProductStore, at: number): Promise<void> {
  const authenticate = createProductAuth({ products, now: () => at })
  const answers = await Promise.all(Object.values(keySecrets).map(([id, secret]) => authenticate(id, secret)))
  expect(answers.map((it) => (it.ok ? 'ok' : it.code))).toEqual(['ok', 'ok', 'PRODUCT_AUTH_INVALID_KEY'])
}

// biome-ignore lint/suspicious/noExplicitAny: as the port of that version had it.
type RecordedParty = any

const wishOf = ({ userId, role }: RecordedParty) => ({ user_id: userId, role })

/** Both come back, on the devices that they had: one transition after another until the end. */
async function goOn(service: InProcessService, call: RecordedParty): Promise<void> {
  const about = { call_uuid: call.callUuid }
  const device = (place: RecordedParty) => (place?.deviceId ? { device_id: place.deviceId } : {})
  const isIt = (message: { data: { call_uuid: string } }) => message.data.call_uuid === call.callUuid
  const caller = await service.connect({ ...wishOf(call.caller), ...device(call.callerPlace) })
  const callee = await service.connect({ ...wishOf(call.callee), ...device(call.calleePlace) })
  if (call.status === 'ringing') {
    const { data } = await callee.next('call.ringing', isIt)
    expect(data).toMatchObject({ display_name: call.caller.displayName, metadata: call.metadata })
    await request(callee, 'call.accept', about)
    await caller.next('call.accepted', isIt)
  }
  await request(caller, 'webrtc.offer', offer(call.callUuid))
  await callee.next('webrtc.offer', isIt)
  await request(callee, 'webrtc.answer', answer(call.callUuid))
  await caller.next('webrtc.answer', isIt)
  if (call.status !== 'connected') await request(caller, 'call.connected', about)
  await request(caller, 'call.end', about)
  expect((await callee.next('call.ended', isIt)).data).toMatchObject({ reason: 'hangup' })
  caller.close()
  callee.close()
}
