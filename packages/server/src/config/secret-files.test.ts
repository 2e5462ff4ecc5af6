import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeConfig, fileVariable, loadConfig, settingRows } from './config.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ringwire-secrets-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function fileOf(content: string): string {
  const path = join(directory, crypto.randomUUID())
  writeFileSync(path, content, { mode: 0o600 })
  return path
}

const key = Buffer.alloc(32, 7).toString('base64url')
const other = Buffer.alloc(32, 8).toString('base64url')
const turn = { RINGWIRE_TURN_URLS: 'turn:a.test', RINGWIRE_TURN_USERNAME: 'ann' }
const stores = { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1/calls', RINGWIRE_JWT_SECRETS: `k:${key}` }
const pem = { format: 'pem', type: 'pkcs8' } as const
const apnsKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(pem).toString().trim()
const private_key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem)
const account = { project_id: 'calls-1042', client_email: 'calls@calls-1042.iam.gserviceaccount.com', private_key }
const apns = { RINGWIRE_APNS_KEY_ID: 'k', RINGWIRE_APNS_TEAM_ID: 't', RINGWIRE_APNS_TOPIC: 'com.example.calls' }

/** One good value of each secret, and what else it needs. */
const values: Record<string, { value: string; env?: Record<string, string> }> = {
  DATABASE_URL: { value: stores.DATABASE_URL },
  REDIS_URL: { value: 'redis://:hunter2@127.0.0.1', env: stores },
  RINGWIRE_JWT_SECRETS: { value: `k:${key},l:${other}` },
  RINGWIRE_BOOTSTRAP_KEYS: { value: `shop-1:${key}:shop` },
  RINGWIRE_TURN_SECRET: { value: 'hunter2' },
  RINGWIRE_ADMIN_TOKEN: { value: 'hunter2-hunter2-hunter2' },
  RINGWIRE_TURN_CREDENTIAL: { value: 'hunter2', env: turn },
  RINGWIRE_VAPID_PRIVATE_KEY: { value: key, env: { RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com' } },
  RINGWIRE_FCM_CREDENTIALS: { value: JSON.stringify(account) },
  RINGWIRE_APNS_KEY: { value: apnsKey, env: apns },
  OTEL_EXPORTER_OTLP_HEADERS: { value: 'api-key=hunter2' },
}

describe.each(settingRows().filter(({ secret }) => secret))('$name', ({ name }) => {
  const { value = '', env = {} } = values[name] ?? {}
  const variable = fileVariable(name)

  test('a file says the same as the variable, its last new line left out', () => {
    const path = fileOf(`${value}\n`)
    const bySetting = loadConfig({ RINGWIRE_NODE_ID: 'one', ...env, [name]: value })
    const byFile = loadConfig({ RINGWIRE_NODE_ID: 'one', ...env, [variable]: path })
    if (!bySetting.ok) throw new Error(bySetting.problems.join())
    expect(bySetting.config.secretFiles).toEqual([])
    expect(byFile).toEqual({ ...bySetting, config: { ...bySetting.config, secretFiles: [path] } })
    expect(describeConfig({ [variable]: path })).toContainEqual({ name, value: '(from file)', source: 'set' })
  })

  test('both are a problem, and so is a file that is empty or cannot be read', () => {
    const problemsOf = (set: Record<string, string>) => {
      const loaded = loadConfig({ ...env, ...set })
      return loaded.ok ? [] : loaded.problems
    }
    const path = fileOf(value)
    expect(problemsOf({ [name]: value, [variable]: path })).toEqual([`${name} and ${variable} exclude each other`])
    const empty = fileOf(' \n')
    expect(problemsOf({ [variable]: empty })).toEqual([`${variable} names an empty file: ${empty}`])
    const missing = join(directory, 'missing')
    expect(problemsOf({ [variable]: missing })).toEqual([`${variable} names no readable file: ${missing} (ENOENT)`])
    expect(problemsOf({ [variable]: directory })).toEqual([
      `${variable} names no readable file: ${directory} (a directory)`,
    ])
  })
})

test('[LOG1] what is wrong with the value in a file names the variable, and shows nothing of the file', () => {
  const loaded = loadConfig({
    DATABASE_URL_FILE: fileOf('postgres://u:hunter2@db.test'),
    REDIS_URL_FILE: fileOf('redis://u:hunter2@h/x'),
    RINGWIRE_JWT_SECRETS_FILE: fileOf('k:aHVudGVyMg'),
    RINGWIRE_BOOTSTRAP_KEYS_FILE: fileOf('shop-1:hunter2'),
  })
  const problems = loaded.ok ? [] : loaded.problems
  expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
    'DATABASE_URL_FILE',
    'REDIS_URL_FILE',
    'RINGWIRE_JWT_SECRETS_FILE',
    'RINGWIRE_BOOTSTRAP_KEYS_FILE',
  ])
  expect(problems.join()).not.toMatch(/hunter2|aHVudGVyMg/)
})

test('the file jwt-secrets of a data directory can be named: one key a line', () => {
  const loaded = loadConfig({ RINGWIRE_JWT_SECRETS_FILE: fileOf(`k:${key}\nl:${other}\n`) })
  expect(loaded.ok && loaded.config.jwtSecrets?.map(({ kid }) => kid)).toEqual(['k', 'l'])
})

test('[PUSH2] what push services need may all be in files, and shows as any other setting', () => {
  const names = settingRows()
    .map(({ name }) => name)
    .filter((name) => /^RINGWIRE_(VAPID|FCM|APNS)_/.test(name))
  expect(settingRows().filter(({ name, hasFile }) => names.includes(name) && hasFile)).toHaveLength(names.length)
  const env = Object.fromEntries(
    Object.entries({ ...apns, RINGWIRE_APNS_KEY: apnsKey, RINGWIRE_APNS_URL: 'http://127.0.0.1:1' }).map(
      ([name, value]) => [fileVariable(name), fileOf(`${value}\n`)],
    ),
  )
  const loaded = loadConfig(env)
  expect(loaded.ok && loaded.config).toMatchObject({
    apnsTopic: apns.RINGWIRE_APNS_TOPIC,
    apnsUrl: 'http://127.0.0.1:1',
  })
  // A file that everybody may read is only a warning if it has a secret.
  expect(loaded.ok && loaded.config.secretFiles).toEqual([env.RINGWIRE_APNS_KEY_FILE ?? ''])
})

test('any other NAME_FILE is no setting', () => {
  expect(loadConfig({ RINGWIRE_PORT_FILE: '/x' }).warnings).toEqual([
    'RINGWIRE_PORT_FILE is not a setting of Ringwire; it is ignored',
  ])
})
