import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@ringwire/testkit/client'
import { until } from '@ringwire/testkit/patience'
import { type Box, createBox, type Running } from './command.ts'

let box: Box
let other: Box
let backups: string
beforeEach(() => {
  box = createBox()
  other = createBox()
  backups = mkdtempSync(join(tmpdir(), 'ringwire-backups-'))
})
afterEach(async () => {
  await Promise.all([box.clean(), other.clean()])
  rmSync(backups, { recursive: true, force: true })
})

const secret = '0123456789012345678901234567890123'
const env = {
  RINGWIRE_BOOTSTRAP_KEYS: `k:${secret}:shop`,
  RINGWIRE_INVITE_RATE: 'off',
  RINGWIRE_PAIR_INVITE_RATE: 'off',
  RINGWIRE_WS_RATE: 'off',
}

async function tokenOf({ url }: Running, user: string): Promise<string> {
  const response = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': 'k', 'X-SVC-Product-Secret': secret },
    body: JSON.stringify({
      context_type: 'order',
      context_id: '17',
      user_id: user,
      role: 'customer',
      display_name: user,
      allowed_peer_role: 'agent',
    }),
  })
  return ((await response.json()) as { token: string }).token
}

function storedCalls(dataDir: string): Set<string> {
  const db = new Database(join(dataDir, 'ringwire.db'), { readonly: true })
  try {
    return new Set(
      db
        .query<{ call_uuid: string }, []>('SELECT call_uuid FROM calls')
        .all()
        .map((row) => row.call_uuid),
    )
  } finally {
    db.close()
  }
}

test('a backup while calls are made holds all that was answered before, and the service starts from it', async () => {
  const service = await box.serve({ env })
  const token = await tokenOf(service, 'ann')
  const ann = new Client({ url: service.url, token })
  await ann.next('auth.ok')
  const answered: string[] = []
  let isOver = false
  const calling = (async () => {
    while (!isOver) {
      const call_uuid = crypto.randomUUID()
      ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent', call_uuid })
      await ann.next('call.invited')
      answered.push(call_uuid)
      ann.send('call.end', { call_uuid })
    }
  })()
  await until('50 calls were answered', () => answered.length >= 50)
  const targets = ['one', 'two', 'three'].map((name) => join(backups, name))
  const before: string[][] = []
  for (const target of targets) {
    before.push([...answered])
    const { code, out, err } = await box.run(`backup ${target} --json`)
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({ target })
  }
  isOver = true
  await calling
  // They went on meanwhile.
  expect(answered.length).toBeGreaterThan(before[2]?.length ?? 0)
  // Nobody writes any more: the last writes are only in the log of the database.
  targets.push(join(backups, 'four'))
  before.push([...answered])
  expect((await box.run(`backup ${targets[3]}`)).code).toBe(0)
  for (const [index, target] of targets.entries()) {
    const stored = storedCalls(target)
    expect(before[index]?.filter((uuid) => !stored.has(uuid))).toEqual([])
    expect(statSync(target).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(target)) expect(statSync(join(target, name)).mode & 0o077).toBe(0)
  }
  expect(readdirSync(backups).sort()).toEqual(['four', 'one', 'three', 'two'])
  ann.close()
  service.signal('SIGTERM')
  await service.ended

  const target = targets[2] ?? ''
  const restored = await other.serve({ env: { ...env, RINGWIRE_DATA_DIR: target } })
  // Earlier tokens are valid: the secrets came along.
  const history = await fetch(`${restored.url}/v1/calls/history?limit=100`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  expect(history.status).toBe(200)
  const { data } = (await history.json()) as { data: { call_uuid: string }[] }
  expect(data.length).toBeGreaterThanOrEqual(50)
}, 240_000)

test('what is no place for a backup is refused, and nothing is left behind', async () => {
  const target = join(backups, 'one')
  expect(await box.run(`backup ${target}`)).toMatchObject({
    code: 1,
    err: expect.stringMatching(/There is no .*RINGWIRE_DATA_DIR/),
  })
  await box.run('keys create --product shop')
  expect((await box.run(`backup ${target}`)).code).toBe(0)
  expect(await box.run(`backup ${target}`)).toMatchObject({
    code: 1,
    err: `No backup was made: ${target} is not empty: a backup takes a directory of its own.\n`,
  })
  const file = join(box.dataDir, 'ringwire.db')
  for (const place of [file, join(file, 'x'), join(file, 'x', 'y')]) {
    expect(await box.run(`backup ${place}`)).toMatchObject({
      ...{ code: 1, out: '' },
      err: `No backup was made: ${place} cannot be written: ${file} is no directory\n`,
    })
  }
  const secrets = join(box.dataDir, 'jwt-secrets')
  rmSync(secrets, { force: true })
  mkdirSync(secrets)
  expect((await box.run(`backup ${target}2`)).code).toBe(1)
  const postgres = await box.run(`backup ${target}2`, { env: { DATABASE_URL: 'postgres://127.0.0.1/calls' } })
  expect(postgres).toMatchObject({ code: 1, err: expect.stringContaining('pg_dump') })
  expect(existsSync(`${target}2`)).toBe(false)
  expect(readdirSync(backups)).toEqual(['one'])
})
