import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { callLife } from '../../src/call/decide.fixture.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { type Box, createBox } from '../cli/command.ts'
import { Postgres } from '../support/postgres.ts'
import { type Authority, demandTlsAndPasswords, makeAuthority } from '../support/postgres-access.ts'

/** What means something in a URL, in SQL, in a shell, in JSON, and what is not ASCII. */
const password = `p@s:s/w?r#d [%41]&=+é"'\\;$`
const wrong = 'the-wrong-password'

let server: Postgres
let directory: string
let authority: Authority
let other: Authority
let box: Box
beforeAll(async () => {
  server = await Postgres.start()
  directory = mkdtempSync(join(tmpdir(), 'ringwire-access-'))
  authority = makeAuthority(directory, 'authority')
  other = makeAuthority(directory, 'other')
  await demandTlsAndPasswords(server, directory, 'authority')
  await server.query(`CREATE ROLE "o'wner" LOGIN PASSWORD '${password.replaceAll("'", "''")}'`)
  await server.query(`CREATE DATABASE secured OWNER "o'wner"`)
})
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())
afterAll(async () => {
  await server.dispose()
  rmSync(directory, { recursive: true, force: true })
})

/** DATABASE_URL of the owner. */
function urlOf(query: string, { host = 'localhost', secret = password } = {}): string {
  const account = [`o'wner`, secret].map(encodeURIComponent).join(':')
  return `postgres://${account}@${host}:${server.port}/secured${query}`
}

const full = () => `?sslmode=verify-full&sslrootcert=${encodeURIComponent(authority.file)}`
const failure = (url: string) => openPostgres({ url, limitMs: 20_000 }).then((stores) => stores.close(), String)

describe('TLS to PostgreSQL', () => {
  test('sslmode=verify-full with sslrootcert: every connection of a service is encrypted, and it works', async () => {
    const env = { DATABASE_URL: urlOf(full()) }
    expect((await box.run('keys create --product shop', { env })).code).toBe(0)
    const service = await box.serve({ env })
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    const connections = await server.query(
      `SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'ringwire:%'`,
    )
    expect(connections.length).toBeGreaterThan(0)
    expect(new Set(connections.map(({ ssl }) => ssl))).toEqual(new Set([true]))
  })

  test('verify-full takes no other authority, no other name, and none where no authority is named', async () => {
    expect(await failure(urlOf(`?sslmode=verify-full&sslrootcert=${other.file}`))).toContain('unable to verify')
    expect(await failure(urlOf('?sslmode=verify-full'))).toContain('unable to verify')
    expect(await failure(urlOf(full(), { host: '127.0.0.1' }))).toContain("does not match certificate's altnames")
    expect(await failure(urlOf(full()))).toBeUndefined()
  })

  test('verify-ca checks the authority and not the name; the others neither, or both where one is named', async () => {
    const byAuthority = (file: string) => `?sslmode=verify-ca&sslrootcert=${file}`
    expect(await failure(urlOf(byAuthority(authority.file), { host: '127.0.0.1' }))).toBeUndefined()
    expect(await failure(urlOf(byAuthority(other.file)))).toContain('unable to verify')
    for (const mode of ['allow', 'prefer', 'require']) {
      expect(await failure(urlOf(`?sslmode=${mode}`, { host: '127.0.0.1' }))).toBeUndefined()
      const named = `?sslmode=${mode}&sslrootcert=`
      expect(await failure(urlOf(named + authority.file))).toBeUndefined()
      expect(await failure(urlOf(named + authority.file, { host: '127.0.0.1' }))).toContain('altnames')
      expect(await failure(urlOf(named + other.file))).toContain('unable to verify')
    }
  })

  test('without TLS the server refuses: one line says so, without the password', async () => {
    for (const query of ['', '?sslmode=disable']) {
      const { code, out, err } = await box.run('serve', { env: { DATABASE_URL: urlOf(query) } })
      expect([code, out]).toEqual([1, ''])
      expect(err).toContain('no encryption (28000)')
      expectNoSecret(err)
    }
  })

  test('a file that is not there is named, by every command', async () => {
    const missing = join(directory, 'missing.pem')
    const env = { DATABASE_URL: urlOf(`?sslmode=verify-full&sslrootcert=${missing}`) }
    const lines = {
      serve: 'sslrootcert in DATABASE_URL names no readable file',
      'config check': 'sslrootcert in DATABASE_URL names no readable file',
      'keys list': `sslrootcert names no readable file: ${missing}`,
    }
    for (const [command, line] of Object.entries(lines)) {
      const { code, err } = await box.run(command, { env })
      expect([code, err]).toEqual([1, expect.stringContaining(line)])
      expectNoSecret(err)
    }
  })
})

/** Neither as it is, nor as it is written in a URL. */
function expectNoSecret(text: string): void {
  for (const secret of [password, encodeURIComponent(password), wrong]) expect(text).not.toContain(secret)
}

describe('passwords of PostgreSQL', () => {
  test('may hold every character, written with % in the URL', async () => {
    const { calls, close } = await openPostgres({ url: urlOf(full()) })
    for (const step of callLife()) await step(calls)
    await close()
  })

  test('a wrong one ends the start with one line, and no password anywhere', async () => {
    const env = { DATABASE_URL: urlOf(full(), { secret: wrong }) }
    for (const command of ['serve', 'keys list', 'migrate', 'config check']) {
      const { code, out, err } = await box.run(command, { env })
      expectNoSecret(out + err)
      if (command !== 'config check' && command !== 'migrate') {
        expect([code, err]).toEqual([1, expect.stringContaining(`password authentication failed for user "o'wner"`)])
      }
    }
  })

  test('one that is changed under a running service: it keeps its connections, and needs the new one after them', async () => {
    await server.query(`CREATE ROLE changing LOGIN PASSWORD 'before'`)
    await server.query(`CREATE DATABASE changing OWNER changing`)
    const url = `postgres://changing:before@localhost:${server.port}/changing${full()}`
    const { calls, close } = await openPostgres({ url, limitMs: 5000, readers: 1, writers: 1 })
    await calls.tryWrite()
    await server.query(`ALTER ROLE changing PASSWORD 'after'`)
    await calls.tryWrite()
    await server.terminateBackends('changing')
    const refused = String(await calls.tryWrite().catch((error: unknown) => error))
    expect(refused).toContain('password authentication failed')
    expect(refused).not.toContain('before')
    await server.query(`ALTER ROLE changing PASSWORD 'before'`)
    await calls.tryWrite()
    await close()
  })
})

describe('a server that cannot be reached', () => {
  /** Every command that needs it names the store, the setting and the address. */
  async function expectNamed(address: string, reason: string, query = ''): Promise<void> {
    const DATABASE_URL = `postgres://somebody:${encodeURIComponent(password)}@${address}/calls${query}`
    const line = `No connection to PostgreSQL at ${address} (DATABASE_URL): ${reason}`
    const shared = { REDIS_URL: 'redis://127.0.0.1:1', RINGWIRE_JWT_SECRETS: `k:${'A'.repeat(43)}` }
    const lines = {
      serve: `Ringwire did not start on 127.0.0.1:0: ${line}\n`,
      'serve --workers 2': `Ringwire did not start on 127.0.0.1:0: ${line}\n`,
      'keys list': `The database (DATABASE_URL) cannot be used: ${line}\n`,
      migrate: `${line}\nNothing was copied. It can be run again.\n`,
    }
    for (const [command, said] of Object.entries(lines)) {
      const env = command.includes('workers') ? { ...shared, DATABASE_URL } : { DATABASE_URL }
      const { code, out, err } = await box.run(command, { env: { ...env, RINGWIRE_LOG_LEVEL: 'silent' } })
      expect([command, code, out, err]).toEqual([command, 1, '', said])
    }
    const logged = await box.run('serve', { env: { DATABASE_URL } })
    expectNoSecret(logged.out + logged.err)
  }

  beforeEach(() => box.run('keys create --product shop'))

  test('nobody listens there', () => expectNamed('127.0.0.1:1', 'Failed to connect'))

  test('the name is unknown', () => expectNamed('nowhere.invalid:5432', 'Failed to connect', '?sslmode=disable'))

  test('it has no TLS, and the URL asks for it', async () => {
    const plain = Bun.listen({
      ...{ hostname: '127.0.0.1', port: 0 },
      socket: {
        // As a server answers SSLRequest where it has no TLS.
        data: (socket) => void socket.write('N'),
      },
    })
    try {
      await expectNamed(`127.0.0.1:${plain.port}`, 'Server does not support SSL', '?sslmode=verify-full')
    } finally {
      plain.stop(true)
    }
  })
})

test('the database is the one of the URL, whatever the environment says to other programs', async () => {
  await server.query(`CREATE DATABASE "of the url"`)
  const DATABASE_URL = server.url('of%20the%20url')
  const others = { PGDATABASE: 'postgres', PGHOST: 'nowhere.invalid', PGPORT: '1', PGUSER: 'nobody', PGPASSWORD: wrong }
  const made = await box.run('keys create --key-id k --product shop', { env: { DATABASE_URL, ...others } })
  expect([made.code, made.err]).toEqual([0, expect.stringContaining('Stored in the database')])
  const keys = await server.query('SELECT key_id FROM product_keys', DATABASE_URL)
  expect(keys.map(({ key_id }) => key_id)).toEqual(['k'])
})

describe('limits of PostgreSQL', () => {
  test('five connections, one less than the service would like: everything is done', async () => {
    await server.query(`ALTER ROLE "o'wner" CONNECTION LIMIT 5`)
    try {
      const { calls, close } = await openPostgres({ url: urlOf(full()) })
      const lives = Array.from({ length: 40 }, async () => {
        for (const step of callLife()) await step(calls)
        await calls.tryWrite()
      })
      await Promise.all(lives)
      await close()
    } finally {
      await server.query(`ALTER ROLE "o'wner" CONNECTION LIMIT -1`)
    }
  })

  test('no connection left: one line says so', async () => {
    await server.query(`ALTER ROLE "o'wner" CONNECTION LIMIT 0`)
    try {
      const { code, err } = await box.run('serve', { env: { DATABASE_URL: urlOf(full()) } })
      expect([code, err]).toEqual([1, expect.stringContaining('too many connections for role')])
    } finally {
      await server.query(`ALTER ROLE "o'wner" CONNECTION LIMIT -1`)
    }
  })
})
