import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { created, liveIn, ringing } from '../../src/ports/call-store.fixture.ts'
import { openConnection } from '../../src/stores/sqlite/connection.ts'
import { temporaryDataDir, versionsOf } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'

const synchronous = 'FULL'
const child = new URL('./sqlite-child.ts', import.meta.url).pathname

let dir: ReturnType<typeof temporaryDataDir>
const children: Bun.Subprocess<'ignore', 'pipe', 'inherit'>[] = []
afterEach(async () => {
  for (const process of children.splice(0)) {
    process.kill('SIGKILL')
    await process.exited
  }
  dir.remove()
})

function start(mode: 'serve' | 'write' | 'open' | 'beside') {
  const process = Bun.spawn([Bun.argv[0] ?? 'bun', child, mode, dir.path], {
    stdout: 'pipe',
    stderr: 'inherit',
    stdin: 'ignore',
  })
  children.push(process)
  return process
}

/** Reads a child's lines, each once, until the pipe ends. */
async function* linesOf(process: Bun.Subprocess<'ignore', 'pipe', 'inherit'>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of process.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

test('the directory and its files are for their owner alone', async () => {
  dir = temporaryDataDir()
  const dataDir = join(dir.path, 'deep', 'data')
  const stores = await openSqlite({ dataDir, synchronous, exclusive: true })
  const call = ringing()
  await stores.calls.transition(call, () => ({ steps: [created(call)] }))
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(dataDir))
    expect([name, statSync(join(dataDir, name)).mode & 0o777]).toEqual([name, 0o600])
  expect(readdirSync(dataDir).length).toBeGreaterThanOrEqual(4)
  await stores.close()
  expect(readdirSync(dataDir).sort()).toEqual(['ringwire.db', 'serve.lock'])
})

describe('one data directory', () => {
  test('is served by one process: a second one is refused with the reason', async () => {
    dir = temporaryDataDir()
    const serving = start('serve')
    const lines = linesOf(serving)
    expect((await lines.next()).value).toBe('open')
    const refusal = openSqlite({ dataDir: dir.path, synchronous, exclusive: true })
    await expect(refusal).rejects.toThrow(`Another ringwire process (pid ${serving.pid}) uses ${dir.path}/`)
    serving.kill('SIGKILL')
    await serving.exited
    const stores = await openSqlite({ dataDir: dir.path, synchronous, exclusive: true })
    await stores.close()
  })

  test('is served by one store of a process too, and free again when that is closed', async () => {
    dir = temporaryDataDir()
    const options = { dataDir: dir.path, synchronous, exclusive: true } as const
    const first = await openSqlite(options)
    await expect(openSqlite(options)).rejects.toThrow(`Another ringwire process (pid ${process.pid})`)
    await first.calls.tryWrite()
    await first.close()
    const second = await openSqlite(options)
    await second.close()
  })

  test('is read, and its keys written, beside the serving process while that writes', async () => {
    dir = temporaryDataDir()
    const writing = start('write')
    const lines = linesOf(writing)
    expect((await lines.next()).value).toBe('open')
    for (let acknowledged = 0; acknowledged < 500; acknowledged++) await lines.next()
    const beside = await openSqlite({ dataDir: dir.path, synchronous, exclusive: false })
    const live = await liveIn(beside.calls)
    expect(live.length).toBeGreaterThan(0)
    for (let index = 0; index < 20; index++) {
      const key = { keyId: `key-${index}`, secretHash: new Uint8Array(32), products: ['p'], origin: 'cli' } as const
      await beside.products.putKey(key, 1000)
    }
    expect((await beside.products.listKeys(1000)).length).toBe(20)
    const call = ringing()
    const write = Promise.resolve(beside.calls.transition(call, () => ({ steps: [created(call)] })))
    await expect(write).rejects.toMatchObject({ kind: 'unavailable' })
    await beside.close()
  })

  test('may be opened for the first time by many at once', async () => {
    dir = temporaryDataDir()
    const many = [start('serve'), ...Array.from({ length: 5 }, () => start('beside'))]
    for (const process of many) {
      const { value } = await linesOf(process).next()
      expect(value).toBe('open')
    }
  })
})

test('SIGKILL in the middle of writing, again and again: what was acknowledged is there', async () => {
  dir = temporaryDataDir()
  const acknowledged = new Map<string, number>()
  for (let round = 0; round < 5; round++) {
    const writing = start('write')
    // Not at a round number of lines: anywhere in a commit.
    let until = 800 + Math.floor(Math.random() * 1500)
    for await (const line of linesOf(writing)) {
      const [callUuid = '', version = ''] = line.split(' ')
      if (version !== '') acknowledged.set(callUuid, Number(version))
      if (--until === 0) writing.kill('SIGKILL')
    }
    await writing.exited
  }
  const stores = await openSqlite({ dataDir: dir.path, synchronous, exclusive: true })
  const live = await liveIn(stores.calls)
  expect(acknowledged.size).toBeGreaterThan(500)
  for (const call of live) {
    expect(call.version).toBeGreaterThanOrEqual(acknowledged.get(call.callUuid) ?? 1)
    acknowledged.delete(call.callUuid)
  }
  expect([...acknowledged.keys()]).toEqual([])
  await stores.close()
  checkWhole()
})

/** The file is sound, and every call has each of its versions once. */
function checkWhole(): void {
  const db = openConnection(dir.database)
  expect(db.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
  const gaps = db
    .query(
      `SELECT calls.call_uuid FROM calls LEFT JOIN call_events ON call_id = calls.id
       GROUP BY calls.id HAVING count(call_events.version) <> calls.version OR max(call_events.version) <> calls.version`,
    )
    .all()
  expect(gaps).toEqual([])
  const call = db.query<{ call_uuid: string; version: number }, []>('SELECT call_uuid, version FROM calls').get()
  db.close()
  if (call === null) throw new Error('There are no calls.')
  expect(versionsOf(dir.database, call.call_uuid).length).toBe(call.version)
}
