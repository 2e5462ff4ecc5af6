import { describe, expect, test } from 'bun:test'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../stores/sqlite/open.ts'
import { dataDir, json, openToAll, run, useDataDirs } from './program.fixture.ts'

useDataDirs()

describe('help and usage', () => {
  test('help names every command, has examples and says what exit codes mean', async () => {
    const { code, out, err } = await run('--help')
    expect([code, err]).toEqual([0, ''])
    for (const word of [
      'serve',
      'keys',
      'products',
      'token',
      'call',
      'vapid',
      'config',
      'version',
      'Exit codes',
      'Start here',
    ]) {
      expect(out).toContain(word)
    }
  })

  test('every command has help of its own', async () => {
    for (const args of [
      'serve',
      'keys',
      'keys create',
      'products set',
      'webhooks set',
      'webhooks retry',
      'token',
      'token mint',
      'token verify',
      'call history',
      'config check',
    ]) {
      const { code, out } = await run(`${args} --help`)
      expect([args, code]).toEqual([args, 0])
      expect(out).toContain(`Usage: ringwire ${args}`)
    }
  })

  test('wrong usage ends with 2, on stderr, and points to the help', async () => {
    for (const args of [
      '',
      'nonsense',
      'keys nonsense',
      'keys create',
      'keys create --product',
      'keys create --product shop --nonsense',
      'keys disable',
      'keys rotate k --grace soon',
      'products set shop --busy maybe',
      'products set shop --ring-timeout-ms 4999',
      'products set shop --reveal-busy perhaps',
      'products set shop --media none',
      'products set shop',
      'webhooks set we_1 --product shop',
      'webhooks set we_1 --description ours',
      'webhooks retry we_1 --product shop',
      'token --product shop',
      'token --product shop --user .. --role customer --peer-role agent',
      'token --product shop --user ann --role . --peer-role agent',
      'token verify',
      'call history --product shop --user a --role b --limit 0',
      'participant disconnect --product shop',
      'participant disconnect customer --product shop',
      'participant disconnect --role customer --product shop',
      'webhooks deliveries we_1 --product shop --cursor later',
      'serve extra',
    ]) {
      const { code, out, err } = await run(args)
      expect([args, code, out]).toEqual([args, 2, ''])
      expect(err).not.toBe('')
    }
  })

  test('help of a group or a command has every option, with its unit and its default', async () => {
    const { out: all } = await run('--help')
    for (const path of ['keys create', 'keys rotate <key-id>', 'token verify [token]', 'call history', 'config list']) {
      expect(all).toContain(`  ${path} `)
    }
    for (const [args, ...options] of [
      ['serve', '--workers'],
      ['keys', '--product', '--key-id', '--grace', '--json'],
      ['products', '--busy', '--reveal-busy', '--ring-timeout-ms', '--json'],
      ['webhooks', '--url', '--events', '--description', '--failed', '--limit', '--cursor', '--json'],
      ['token', '--product', '--user', '--role', '--peer-role', '--name', '--context-type', '--device', '--ttl'],
      ['call', '--limit', '--cursor'],
      ['migrate', '--print-jwt-secrets'],
      ['backup', '--json'],
    ] as const) {
      const { out } = await run(`${args} --help`)
      for (const option of options) expect([args, out]).toEqual([args, expect.stringContaining(`  ${option}`)])
      // Each option with a value, up to the next one: it has a default, or it is required.
      const entries = out.matchAll(/^ {2}(--[\w-]+) <([^>]+)>([\s\S]*?)(?=^ {2}-|^$)/gm)
      const isRequired = /^--(product|user|role|peer-role|by)$/
      for (const [entry, option = '', unit = ''] of entries) {
        if (!isRequired.test(option)) expect(entry.replaceAll(/\s+/g, ' ')).toContain('(default: ')
        if (unit === 'seconds') expect(entry).toContain('seconds,')
        if (unit === 'ms') expect(entry).toContain('in ms')
      }
    }
  })

  test('a mistyped command or option names the nearest one, whatever else is missing', async () => {
    for (const [args, hint] of [
      ['tokne --product shop', "unknown command 'tokne'\n(Did you mean token?)"],
      ['keys craete', "unknown command 'craete'\n(Did you mean create?)"],
      ['token verfy', "unknown command 'verfy'\n(Did you mean verify?)"],
      ['rotate k', "unknown command 'rotate'\n(Did you mean keys rotate or webhooks rotate?)"],
      ['history', "unknown command 'history'\n(Did you mean call history?)"],
      ['nonsense', "unknown command 'nonsense'\n(Commands: serve, keys, products, groups, webhooks, token,"],
      ['keys create --prodct shop', "unknown option '--prodct'\n(Did you mean --product?)"],
      ['token --product shop --usr ann', "unknown option '--usr'\n(Did you mean --user?)"],
      ['serve --port 9000', "unknown option '--port'\n(That is a setting: set RINGWIRE_PORT in the environment."],
      ['serve --port=9000', "unknown option '--port'\n(That is a setting: set RINGWIRE_PORT in"],
      ['serve --ringwire-port 9000', "unknown option '--ringwire-port'\n(That is a setting: set RINGWIRE_PORT in"],
      ['serve --database-url postgres://x', "unknown option '--database-url'\n(That is a setting: set DATABASE_URL in"],
      ['keys list --data-dir x', "unknown option '--data-dir'\n(That is a setting: set RINGWIRE_DATA_DIR in"],
      ['serve --prot 9000', "unknown option '--prot'\n(Did you mean the setting RINGWIRE_PORT?"],
      ['keys list --nonsense', "unknown option '--nonsense'\n(Options: --exact, --json, --help)"],
      ['config check --jsn', "unknown option '--jsn'\n(Did you mean --json?)"],
    ] as const) {
      const { code, out, err } = await run(args)
      expect([args, code, out, err]).toEqual([args, 2, '', expect.stringContaining(`error: ${hint}`)])
    }
  })

  test('what is typed in the wrong place moves no cursor, and a token does not come back', async () => {
    const token = `eyJhbGciOiJIUzI1NiJ9.${'a'.repeat(60)}.${'b'.repeat(43)}`
    for (const args of [token, `token ${token}`, `keys ${token}`]) {
      const { code, err } = await run(args)
      expect([code, err]).toEqual([2, expect.stringContaining('token verify')])
      expect(err).not.toContain('eyJ')
    }
    expect((await run('keys create --product \u001b[2Jx')).err).toContain("'\\u001b[2Jx'")
    expect((await run('\u001b[2J')).err).toContain("'\\u001b[2J'")
  })

  test('names that are refused: the error says the rule', async () => {
    const product = 'A product is 1 to 255 bytes of UTF-8 without control characters, and with no space at its ends.'
    const keyId = 'A key ID is 1 to 255 visible ASCII characters, the first of them not -.'
    const name = 'It must be 1 to 255 bytes of UTF-8, and not blank.'
    for (const [args, rule] of [
      [['keys', 'create', '--product', ''], product],
      [['keys', 'create', '--product', ' shop'], product],
      [['keys', 'create', '--product', 'sh\u0000op'], product],
      [['keys', 'create', '--product', 'ü'.repeat(128)], product],
      [['products', 'set', 'shop\t', '--busy', 'allow'], product],
      [['keys', 'create', '--product', 'shop', '--key-id', 'ä'], keyId],
      [['keys', 'create', '--product', 'shop', '--key-id', '-k'], keyId],
      [['keys', 'create', '--product', 'shop', '--key-id', 'k'.repeat(256)], keyId],
      [['call', 'history', '--product', 'shop', '--role', 'a', '--user', '  '], name],
    ] as const) {
      const { code, out, err } = await run(args)
      expect([args, code, out, err]).toEqual([args, 2, '', expect.stringContaining(rule)])
    }
    for (const good of ['ü'.repeat(127), 'a:b', 'two words']) {
      expect((await run(['keys', 'create', '--product', good])).code).toBe(0)
    }
  })

  test('a slip at --workers is told, and makes no worker', async () => {
    const { code, out, err, served } = await run('serve --worker 2')
    expect([code, out, served]).toEqual([2, '', undefined])
    expect(err).toStartWith("error: unknown option '--worker'\n(Did you mean --workers?)\n")
    expect((await run('serve --help')).out).not.toContain('worker-of')
  })

  test('version', async () => {
    for (const args of ['version', '--version']) {
      expect(await run(args)).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^ringwire \d+\.\d+\.\d+ \(Bun .+\)\n$/),
      })
    }
  })

  test('a bad configuration ends every command that needs it with 1, one line per problem', async () => {
    for (const args of ['serve', 'keys list', 'token --product p --user u --role r --peer-role x']) {
      const { code, out, err } = await run(args, {
        env: { RINGWIRE_PORT: 'x', REDIS_URL: 'http://h', RINGWIRE_PROT: '1' },
      })
      expect([args, code, out]).toEqual([args, 1, ''])
      expect(err.trim().split('\n')).toEqual([
        expect.stringContaining('RINGWIRE_PORT'),
        expect.stringContaining('REDIS_URL'),
        expect.stringContaining('warning: RINGWIRE_PROT'),
      ])
    }
  })
})

test('a variable that is no setting is a warning of every command that reads the settings, once', async () => {
  const env = { RINGWIRE_PROT: '8932' }
  const warning = 'warning: RINGWIRE_PROT is not a setting of Ringwire; it is ignored. Did you mean RINGWIRE_PORT?\n'
  const { code, err } = await run('keys create --product shop', { env })
  expect([code, err.split(warning).length]).toEqual([0, 2])
  expect(await run('keys list --json', { env })).toMatchObject({ code: 0, err: warning })
  const token = await run('token --product shop --user ann --role customer --peer-role agent', { env })
  expect([token.code, token.err.split(warning).length]).toEqual([0, 2])
  expect(await run('version', { env })).toMatchObject({ code: 0, err: '' })
})

describe('serve', () => {
  test('warnings are for the log; those of the demo are shown at once to whoever starts it', async () => {
    const env = { RINGWIRE_PROT: '8932' }
    const logged = await run('serve', { env })
    expect([logged.err, logged.warnings]).toEqual(['', [expect.stringContaining('RINGWIRE_PROT')]])
    const shown = await run('serve', { env: { ...env, RINGWIRE_DEMO: '1' } })
    expect([shown.err, shown.warnings]).toEqual([expect.stringContaining('warning: RINGWIRE_PROT is not'), []])
    const worker = await run('serve --as-worker-of-this-node 1', { env: { ...env, RINGWIRE_DEMO: '1' } })
    expect([worker.err, worker.warnings]).toEqual(['', []])
  })

  test('gets the configuration, and its exit code is the command’s', async () => {
    const ran = await run('serve', { env: { RINGWIRE_PORT: '0' } })
    expect([ran.code, ran.served?.port, ran.served?.dataDir]).toEqual([7, 0, dataDir])
  })

  test('a certificate that is not there stops the start', async () => {
    const { code, err, served } = await run('serve', {
      env: { RINGWIRE_TLS_CERT: join(dataDir, 'no.pem'), RINGWIRE_TLS_KEY: join(dataDir, 'no.key') },
    })
    expect([code, served]).toEqual([1, undefined])
    expect(err).toContain('RINGWIRE_TLS_CERT')
    expect(err).toContain('RINGWIRE_TLS_KEY')
  })

  test('a secret that every account may read is a warning of the start, once for all workers', async () => {
    const file = openToAll('jwt-secrets')
    expect((await run('serve')).warnings).toEqual([expect.stringContaining(`chmod o-rwx ${file}`)])
    expect((await run('serve --as-worker-of-this-node 1')).warnings).toEqual([])
  })
})

describe('config', () => {
  test('check shows every setting and no secret', async () => {
    const secret = 'x'.repeat(40)
    const file = join(dataDir, 'bootstrap-keys')
    writeFileSync(file, `shop-1:${secret}:shop\n`, { mode: 0o644 })
    const turn = { RINGWIRE_TURN_URLS: 'turn:a', RINGWIRE_TURN_SECRET: secret }
    const env = { ...turn, RINGWIRE_BOOTSTRAP_KEYS_FILE: file, RINGWIRE_PORT: '99' }
    const { code, out, err } = await run('config check', { env })
    expect(code).toBe(0)
    expect(out).toMatch(/RINGWIRE_PORT +99 +set/)
    expect(out).toMatch(/RINGWIRE_BOOTSTRAP_KEYS +\(from file\) +set/)
    expect(err).toContain(`warning: every account of this machine may use ${file}, a secret: chmod o-rwx ${file}`)
    expect(out + err).not.toContain(secret)
    expect(err).toEndWith('The configuration is good, with 1 warning.\n')
    const typo = await run('config check', { env: { ...env, RINGWIRE_PROT: '1' } })
    expect(typo.err).toEndWith('The configuration is good, with 2 warnings.\n')
  })

  test('check ends with 1 where something is wrong, and names it', async () => {
    const { code, err } = await run('config check', { env: { RINGWIRE_PORT: 'x' } })
    expect([code, err]).toEqual([1, expect.stringContaining('RINGWIRE_PORT')])
    const asJson = await run('config check --json', { env: { RINGWIRE_PORT: 'x', RINGWIRE_Z: '1' } })
    expect(asJson.code).toBe(1)
    expect(JSON.parse(asJson.out)).toMatchObject({
      ok: false,
      problems: [expect.any(String)],
      warnings: [expect.any(String)],
    })
  })

  test('check says which file cannot be opened, and which secret every account may read', async () => {
    const file = openToAll('demo-secret')
    const missing = join(dataDir, 'ca.pem')
    const DATABASE_URL = `postgres://127.0.0.1/calls?sslmode=verify-full&sslrootcert=${missing}`
    const { code, err } = await run('config check', { env: { DATABASE_URL } })
    expect([code, err]).toEqual([1, expect.stringContaining(`${missing} (ENOENT)`)])
    expect(err).toContain(`warning: every account of this machine may use ${file}`)
    expect(err).not.toContain('The configuration is good')
  })

  test('check makes nothing on disk', async () => {
    rmSync(dataDir, { recursive: true })
    expect((await run('config check')).code).toBe(0)
    expect(existsSync(dataDir)).toBe(false)
  })

  test('list explains every setting', async () => {
    const { out } = await run('config list')
    expect(out).toContain('RINGWIRE_TRUST_PROXY')
    expect((await json<object[]>('config list')).length).toBeGreaterThan(30)
  })
})

test('what only reads says that there is no data directory, and makes none', async () => {
  rmSync(dataDir, { recursive: true })
  for (const args of [
    'keys list',
    'keys list --json',
    'keys disable k',
    'keys rotate k',
    'products list',
    'call history --product shop --user ann --role customer',
  ]) {
    const { code, out, err } = await run(args)
    expect([args, code, out]).toEqual([args, 1, ''])
    expect(err).toMatch(/^There is no data directory of a service at [^\n]+ begins with: ringwire keys create[^\n]+\n$/)
    expect(existsSync(dataDir)).toBe(false)
  }
})

test('what begins a data directory says so, and where', async () => {
  for (const args of [
    'keys create --product shop',
    'keys create --product shop --json',
    'products set shop --busy reject',
  ]) {
    rmSync(dataDir, { recursive: true })
    const said = `${dataDir} (RINGWIRE_DATA_DIR) was begun as a new data directory: a service that runs with another one does not know of this.\n`
    expect(await run(args)).toMatchObject({ code: 0, err: expect.stringContaining(said) })
    expect((await run(args)).err).not.toContain('was begun')
  }
})

test('a data directory that cannot be used: 1, and one line', async () => {
  const file = join(dataDir, 'file')
  writeFileSync(file, '')
  for (const place of [file, join(file, 'below')]) {
    const env = { RINGWIRE_DATA_DIR: place }
    for (const args of ['serve', 'config check', 'keys list', 'token verify a.b.c']) {
      const { code, err, served } = await run(args, { env })
      expect([args, code, served]).toEqual([args, 1, undefined])
      expect(err).toBe(`The data directory ${place} (RINGWIRE_DATA_DIR) cannot be used: ${file} is no directory\n`)
    }
    const { code, err } = await run('keys create --product shop', { env })
    expect([code, err.trim().split('\n')]).toEqual([1, [expect.stringContaining('RINGWIRE_DATA_DIR')]])
  }
})

test('a data directory that nothing is kept in does not count', async () => {
  const file = join(dataDir, 'file')
  writeFileSync(file, '')
  const elsewhere = { DATABASE_URL: 'postgres://127.0.0.1:1/calls', RINGWIRE_JWT_SECRETS: `k:${'A'.repeat(43)}` }
  const { code, err } = await run('config check', { env: { ...elsewhere, RINGWIRE_DATA_DIR: file } })
  // Nothing listens there, and nothing else is wrong.
  expect([code, err.split('\n').filter((line) => !line.startsWith('PostgreSQL: '))]).toEqual([1, ['']])
})

test('[SRV2] participant disconnect takes tokens back and forgets devices, of nobody else', async () => {
  await run('keys create --product shop')
  const store = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
  try {
    const [ann, ben] = ['ann', 'ben'].map((userId) => ({ product: 'shop', role: 'customer', userId }))
    if (ann === undefined || ben === undefined) throw new Error('nobody')
    for (const participant of [ann, ben]) {
      const address = { platform: 'fcm', token: participant.userId } as const
      await store.devices.put({ participant, deviceId: 'phone', address, registeredAt: Date.now() })
    }
    const begin = Date.now()
    const { tokens_from } = await json<{ tokens_from: string }>('participant disconnect customer ann --product shop')
    expect(Date.parse(tokens_from)).toBeGreaterThanOrEqual(begin)
    const far = await run('participant disconnect customer ben --product shop --until 9999-12-31T00:00:00Z')
    expect([far.code, far.err]).toEqual([2, expect.stringContaining('--until must be no more than ten years')])
    expect((await store.products.revocations(0)).map(({ before }) => before)).toEqual([Date.parse(tokens_from)])
    const counts = await Promise.all([ann, ben].map(async (who) => (await store.devices.of(who, Date.now())).length))
    expect(counts).toEqual([0, 1])
    // As it was written before it took arguments.
    expect((await run('participant disconnect --product shop --role customer --user ben')).code).toBe(0)
    expect(await store.devices.of(ben, Date.now())).toEqual([])
  } finally {
    await store.close()
  }
})
