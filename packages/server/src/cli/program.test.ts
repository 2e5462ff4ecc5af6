import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { actorOf, callLife } from '../../test/contracts/call-life.ts'
import { openSqlite } from '../adapters/sqlite/open.ts'
import { createProductAuth } from '../auth/product-auth.ts'
import { decideInvite } from '../call/invite.ts'
import type { Config } from '../config/config.ts'
import { migrateToPostgres } from '../services/migration.ts'
import { runCommandLine } from './program.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-cli-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

interface Ran {
  code: number
  out: string
  err: string
  served: Config | undefined
  /** What the service is given to log when it starts. */
  warnings: readonly string[]
}

async function run(
  args: string | readonly string[],
  options: { env?: Record<string, string>; input?: string; now?: number } = {},
): Promise<Ran> {
  const ran: Ran = { code: -1, out: '', err: '', served: undefined, warnings: [] }
  ran.code = await runCommandLine(typeof args === 'string' ? args.split(' ').filter(Boolean) : args, {
    env: { RINGWIRE_DATA_DIR: dataDir, ...options.env },
    now: () => options.now ?? Date.UTC(2026, 0, 1),
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    terminal: undefined,
    openConsole: () => {
      throw new Error('not asked for')
    },
    readInput: async () => options.input ?? '',
    openStore: (config) =>
      openSqlite({ dataDir: config.dataDir, synchronous: config.sqliteSynchronous, exclusive: false }),
    backUp: () => Promise.reject(new Error('not asked for')),
    migrate: migrateToPostgres,
    serve: async (config, warnings) => {
      ran.served = config
      ran.warnings = warnings
      return 7
    },
  })
  return ran
}

async function json<T>(args: string, options?: Parameters<typeof run>[1]): Promise<T> {
  const { code, out, err } = await run(`${args} --json`, options)
  expect([args, code, err]).toEqual([args, 0, ''])
  return JSON.parse(out) as T
}

/** A file of the data directory that every account may read. */
function openToAll(name: string): string {
  const file = join(dataDir, name)
  writeFileSync(file, '')
  chmodSync(file, 0o644)
  return file
}

async function authenticate(keyId: string, secret: string, now = Date.UTC(2026, 0, 1)) {
  const { products, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
  try {
    const answer = await createProductAuth({ products, now: () => now })(keyId, secret)
    return answer.ok ? 'ok' : answer.code
  } finally {
    await close()
  }
}

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
      const isRequired = /^--(product|user|role|peer-role)$/
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
      ['nonsense', "unknown command 'nonsense'\n(Commands: serve, keys, products, webhooks, token,"],
      ['keys create --prodct shop', "unknown option '--prodct'\n(Did you mean --product?)"],
      ['token --product shop --usr ann', "unknown option '--usr'\n(Did you mean --user?)"],
      ['keys list --nonsense', "unknown option '--nonsense'\n(Options: --json, --help)"],
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

describe('serve', () => {
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

describe('keys', () => {
  test('[TOK4] create prints 256 random bits once, and they authenticate', async () => {
    const { code, out, err } = await run('keys create --product shop')
    expect(code).toBe(0)
    const keyId = /Key ID +(\S+)/.exec(out)?.[1] ?? ''
    const secret = /Secret +(\S+)/.exec(out)?.[1] ?? ''
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    expect(err).not.toContain(secret)
    expect(await authenticate(keyId, secret)).toBe('ok')
    const list = await run('keys list')
    expect(list.out).toContain(keyId)
    expect(list.out).not.toContain(secret)
  })

  test('create for several products, with an ID of its own, as JSON', async () => {
    const key = await json<{ key_id: string; secret: string }>('keys create --key-id mine --product a --product b')
    expect(key).toEqual({ key_id: 'mine', secret: expect.any(String), products: ['a', 'b'] } as never)
    expect(await json<object[]>('keys list')).toEqual([
      {
        key_id: 'mine',
        products: ['a', 'b'],
        state: 'enabled',
        origin: 'cli',
        created_at: '2026-01-01T00:00:00.000Z',
        secrets: 1,
      },
    ])
  })

  test('an ID that is taken is refused, and the key stays as it was', async () => {
    const { secret } = await json<{ secret: string }>('keys create --key-id mine --product a')
    const again = await run('keys create --key-id mine --product b')
    expect(again).toMatchObject({ code: 1, out: '' })
    expect(await authenticate('mine', secret)).toBe('ok')
  })

  test('disable and enable', async () => {
    const { secret } = await json<{ secret: string }>('keys create --key-id mine --product a')
    expect((await run('keys disable mine')).code).toBe(0)
    expect(await authenticate('mine', secret)).toBe('PRODUCT_AUTH_INVALID_KEY')
    expect((await run('keys enable mine')).code).toBe(0)
    expect(await authenticate('mine', secret)).toBe('ok')
  })

  test('rotate: the old secret ends with its grace', async () => {
    const now = Date.UTC(2026, 0, 1)
    const { secret: old } = await json<{ secret: string }>('keys create --key-id mine --product a')
    const { secret: fresh, ...rotated } = await json<{ secret: string }>('keys rotate mine --grace 60')
    expect(rotated).toEqual({ key_id: 'mine', old_secret_valid_until: '2026-01-01T00:01:00.000Z' } as never)
    expect([await authenticate('mine', old, now + 59_000), await authenticate('mine', fresh, now + 59_000)]).toEqual([
      'ok',
      'ok',
    ])
    expect(await authenticate('mine', old, now + 61_000)).toBe('PRODUCT_AUTH_INVALID_SECRET')
    expect(await authenticate('mine', fresh, now + 61_000)).toBe('ok')
  })

  test('a key that is not there: 3', async () => {
    await run('keys create --product shop')
    for (const args of ['keys disable no', 'keys enable no', 'keys rotate no']) {
      expect(await run(args)).toMatchObject({ code: 3, out: '', err: 'There is no key no.\n' })
    }
  })

  test('a key of the environment is not rotated here', async () => {
    const { products, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
    await products.putKey({ keyId: 'env', secretHash: new Uint8Array(32), products: ['a'], origin: 'bootstrap' }, 0)
    await close()
    expect(await run('keys rotate env')).toMatchObject({
      code: 1,
      err: expect.stringContaining('RINGWIRE_BOOTSTRAP_KEYS'),
    })
    expect(await run('keys disable env')).toMatchObject({
      code: 0,
      err: expect.stringContaining('RINGWIRE_BOOTSTRAP_KEYS'),
    })
  })
})

describe('webhooks', () => {
  const url = 'https://backend.example.com/webhooks'
  interface Endpoint {
    id: string
    url: string
    events: string[]
    description: string | null
    enabled: boolean
    created_at: string
    secret?: string
  }
  const create = async (options = '') => {
    const { secret: _, ...endpoint } = await json<Endpoint>(`webhooks create ${url} --product shop${options}`)
    return endpoint
  }
  const list = () => json<Endpoint[]>('webhooks list --product shop')
  type Work<T> = (store: Awaited<ReturnType<typeof openSqlite>>) => T | Promise<T>
  const withStore = async <T>(work: Work<T>, exclusive = false) => {
    const store = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive })
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }
  const stored = (id: string) =>
    withStore(async ({ webhooks }) => (await webhooks.endpointsOf('shop')).find((endpoint) => endpoint.id === id))

  test('[HOOK1] set changes what is given, and nothing else', async () => {
    const before = await create(' --events call.ended --description ours')
    const set = (options: string) => json<Endpoint>(`webhooks set ${before.id} --product shop ${options}`)
    const moved = { ...before, url: 'https://other.example.com/' }
    expect(await set('--url https://other.example.com')).toEqual(moved)
    const told = { ...moved, events: ['call.missed', 'participant.online'], description: 'theirs' }
    expect(await set('--events call.missed,participant.online --description theirs')).toEqual(told)
    expect(await list()).toEqual([told])
    const { out } = await run(`webhooks set ${before.id} --product shop --events all`)
    expect(out).toMatch(/^ID +URL +STATE +EVENTS +DESCRIPTION\nwe_\w+ +https:\/\/other\S+ +enabled +all +theirs\n$/)
    expect((await run(['webhooks', 'set', before.id, '--product', 'shop', '--description', ''])).code).toBe(0)
    const asMade = { ...(await create()), id: before.id, url: moved.url }
    expect((await list()).find(({ id }) => id === before.id)).toEqual(asMade)
  })

  test('[HOOK1, HOOK4] what an endpoint may not be changes nothing; one that is not there ends with 3', async () => {
    const endpoint = await create()
    for (const [args, exit, said] of [
      [`${endpoint.id} --product shop --url http://example.com/`, 1, 'url must begin with https://.'],
      [`${endpoint.id} --product shop --url https://10.0.0.1/`, 1, 'url must lead to a public address.'],
      [`${endpoint.id} --product shop --events call.ended,call.unknown`, 1, 'events must be a list of some of'],
      [
        `${endpoint.id} --product shop --description ${'x'.repeat(256)}`,
        1,
        'description must be a text of at most 255',
      ],
      [`${endpoint.id} --product clinic --events all`, 3, `The product clinic has no webhook endpoint ${endpoint.id}.`],
      ['we_none --product shop --events all', 3, 'The product shop has no webhook endpoint we_none.'],
    ] as const) {
      const { code, out, err } = await run(`webhooks set ${args}`)
      expect([args, code, out, err]).toEqual([args, exit, '', expect.stringContaining(said)])
    }
    expect(await list()).toEqual([endpoint])
  })

  test('[HOOK1] rotate prints a new secret, and the one before signs for 24 hours', async () => {
    const now = Date.UTC(2026, 0, 1)
    const created = await json<Endpoint>(`webhooks create ${url} --product shop`)
    const { secret, ...endpoint } = await json<Endpoint>(`webhooks rotate ${created.id} --product shop`)
    expect<Endpoint>({ ...endpoint, secret: created.secret ?? '' }).toEqual(created)
    expect(secret).toMatch(/^whsec_/)
    expect(secret).not.toBe(created.secret)
    expect(await stored(created.id)).toMatchObject({
      secret,
      oldSecret: created.secret,
      oldSecretUntil: now + 86_400_000,
    })
    const { out, err } = await run(`webhooks rotate ${created.id} --product shop`)
    const again = /^Secret +(whsec_\S+)$/m.exec(out)?.[1]
    expect(await stored(created.id)).toMatchObject({ secret: again, oldSecret: created.secret })
    expect(err).toBe('The secret is not shown again. Keep it where the webhooks are received.\n')
  })

  test('[HOOK1] disable and enable say what the endpoint is then', async () => {
    const endpoint = await create()
    const disable = `webhooks disable ${endpoint.id} --product shop`
    expect(await run(disable)).toMatchObject({ code: 0, out: '', err: `${endpoint.id} is disabled.\n` })
    expect(await list()).toEqual([{ ...endpoint, enabled: false }])
    expect(await json<Endpoint>(disable)).toEqual({ ...endpoint, enabled: false })
    expect(await json<Endpoint>(`webhooks enable ${endpoint.id} --product shop`)).toEqual(endpoint)
  })

  test('[HOOK1] delete removes an endpoint with its deliveries, and no other', async () => {
    const [gone, stays] = [await create(), await create()]
    for (const { id } of [gone, stays]) await json(`webhooks test ${id} --product shop`)
    const remove = `webhooks delete ${gone.id} --product shop`
    expect(await run(remove)).toMatchObject({ code: 0, out: '', err: `${gone.id} is removed.\n` })
    expect(await list()).toEqual([stays])
    expect(await json<object[]>(`webhooks deliveries ${stays.id} --product shop`)).toHaveLength(1)
    expect(await run(remove)).toMatchObject({
      code: 3,
      err: `The product shop has no webhook endpoint ${gone.id}.\n`,
    })
    expect(await json<object>(`webhooks delete ${stays.id} --product shop`)).toEqual({ id: stays.id, deleted: true })
    const query = { endpointId: gone.id, status: undefined, limit: 9, before: undefined }
    expect(await withStore(({ webhooks }) => webhooks.deliveries(query))).toEqual([])
  })

  test('[HOOK1] rotate, disable, delete and deliveries of another product, or of none, end with 3', async () => {
    const created = await json<Endpoint>(`webhooks create ${url} --product shop`)
    for (const verb of ['rotate', 'disable', 'delete', 'deliveries']) {
      for (const [id, product] of [
        ['we_none', 'shop'],
        [created.id, 'clinic'],
      ]) {
        const err = `The product ${product} has no webhook endpoint ${id}.\n`
        expect(await run(`webhooks ${verb} ${id} --product ${product}`)).toMatchObject({ code: 3, out: '', err })
      }
    }
    expect(await stored(created.id)).toMatchObject({ secret: created.secret, oldSecret: null, enabled: true })
  })

  test('[HOOK3] deliveries: all, page after page, and those alone that failed', async () => {
    const { id } = await create()
    const list = `webhooks deliveries ${id} --product shop`
    expect(await run(list)).toMatchObject({ code: 0, out: '', err: 'There are none.\n' })
    const sent: string[] = []
    for (let n = 0; n < 3; n++) {
      sent.unshift((await json<{ delivery_id: string }>(`webhooks test ${id} --product shop`)).delivery_id)
    }
    // As a service that delivers them.
    await withStore(async ({ webhooks }) => {
      await webhooks.claim(new Map([[id, 3]]))
      const over = { afterMs: 0, at: Date.UTC(2026, 0, 1), response: 'answer' }
      await webhooks.settle([
        { id: sent[0] ?? '', outcome: 'delivered', responseStatus: 200, ...over },
        { id: sent[1] ?? '', outcome: 'failed', responseStatus: 410, ...over },
        { id: sent[2] ?? '', outcome: 'failed', responseStatus: 500, ...over },
      ])
    }, true)
    const of = async (options: string) =>
      (await json<{ id: string; status: string }[]>(list + options)).map((one) => [one.id, one.status])
    const [delivered, gone, failed] = [
      [sent[0], 'delivered'],
      [sent[1], 'failed'],
      [sent[2], 'failed'],
    ]
    expect(await of('')).toEqual([delivered, gone, failed] as string[][])
    expect(await of(' --failed')).toEqual([gone, failed] as string[][])
    const first = await run(`${list} --failed --limit 1`)
    expect(first.out).toMatch(new RegExp(`^ID +TYPE .+\\n${sent[1]} +webhook.test +failed +1 +\\S+ +410\\n$`))
    expect(first.err).toBe(`More with --cursor ${sent[1]}\n`)
    expect(await of(` --failed --limit 1 --cursor ${sent[1]}`)).toEqual([failed] as string[][])
    expect((await run(`${list} --limit 1 --cursor ${sent[1]}`)).err).toBe('')
    expect(await of(` --cursor ${sent[2]}`)).toEqual([])
  })

  test('[HOOK1] retry of what is not there, or not over, ends with 3', async () => {
    const { id } = await create()
    const { delivery_id: pending } = await json<{ delivery_id: string }>(`webhooks test ${id} --product shop`)
    for (const [args, said] of [
      [`we_none ${pending} --product shop`, 'The product shop has no webhook endpoint we_none.'],
      [`${id} ${pending} --product clinic`, `The product clinic has no webhook endpoint ${id}.`],
      [`${id} msg_none --product shop`, `The endpoint ${id} has no delivery msg_none that is over.`],
      [`${id} ${pending} --product shop`, `The endpoint ${id} has no delivery ${pending} that is over.`],
    ] as const) {
      expect([args, await run(`webhooks retry ${args}`)]).toEqual([
        args,
        expect.objectContaining({ code: 3, out: '', err: expect.stringContaining(said) }),
      ])
    }
  })
})

describe('products', () => {
  test('[INV5] set changes what is given and keeps the rest', async () => {
    expect(await json<object>('products set shop --busy reject')).toEqual({
      product: 'shop',
      busy: 'reject',
      reveal_busy: false,
      ring_timeout_ms: null,
      media: 'all',
      presence: 'off',
    })
    await json('products set shop --reveal-busy true --ring-timeout-ms 20000')
    await json('products set shop --ring-timeout-ms default')
    await json('products set shop --media relay')
    await json('products set shop --presence peers')
    expect(await json<object[]>('products list')).toEqual([
      { product: 'shop', busy: 'reject', reveal_busy: true, ring_timeout_ms: null, media: 'relay', presence: 'peers' },
    ])
    expect((await run('products list')).out).toMatch(/shop +reject +true +default +relay +peers/)
  })
})

describe('vapid', () => {
  test('[PUSH2] prints a pair that the settings take, another one each time, and stores nothing', async () => {
    const { code, out, err } = await run('vapid')
    const env = Object.fromEntries(
      out
        .trim()
        .split('\n')
        .map((line) => line.split('=')),
    )
    expect([code, Object.keys(env)]).toEqual([0, ['RINGWIRE_VAPID_PRIVATE_KEY', 'RINGWIRE_VAPID_PUBLIC_KEY']])
    expect(err).not.toContain(env.RINGWIRE_VAPID_PRIVATE_KEY)
    const subject = { RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com' }
    expect((await run('config check', { env: { ...env, ...subject } })).code).toBe(0)
    const other = await json<{ private_key: string; public_key: string }>('vapid')
    // The public key of another pair does not fit.
    const mixed = { ...env, RINGWIRE_VAPID_PUBLIC_KEY: other.public_key, ...subject }
    expect((await run('config check', { env: mixed })).code).not.toBe(0)
    const second = { RINGWIRE_VAPID_PRIVATE_KEY: other.private_key, RINGWIRE_VAPID_PUBLIC_KEY: other.public_key }
    expect((await run('config check', { env: { ...second, ...subject } })).code).toBe(0)
    expect(readdirSync(dataDir)).toEqual([])
  })
})

describe('token', () => {
  const mint = 'token --product shop --user ann --role customer --peer-role agent'
  const secretsFile = () => join(dataDir, 'jwt-secrets')
  const makeKey = () => run('keys create --product shop --key-id k')

  test('mint prints a token that the same data directory verifies, and says who signed', async () => {
    await makeKey()
    const minted = await json<{ token: string; signed_by: { kid: string; secrets: string } }>(
      `${mint} --peer-role boss --ttl 60 --name Ann --device d`,
    )
    const [kid = '', key = ''] = readFileSync(secretsFile(), 'utf8').trim().split(':')
    expect(minted).toMatchObject({
      ws_url: 'ws://127.0.0.1:8080/v1/ws',
      expires_at: '2026-01-01T00:01:00.000Z',
      signed_by: { kid, secrets: secretsFile() },
    } as never)
    const { code, out, err } = await run(`token verify ${minted.token}`)
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({
      product: 'shop',
      user_id: 'ann',
      role: 'customer',
      display_name: 'Ann',
      allowed_peer_roles: ['agent', 'boss'],
      device_id: 'd',
      expires_at: '2026-01-01T00:01:00.000Z',
    })
    const told = await run(mint)
    expect(told.err).toBe(
      `Signed with the key ${kid} of ${secretsFile()}. A service with other secrets refuses it.\nTo call with it: ringwire phone --token -, which asks for it.\n`,
    )
    expect(told.out + told.err + JSON.stringify(minted)).not.toContain(key)
  })

  test('verify reads standard input: the token, a header, or what token printed', async () => {
    await makeKey()
    const text = await run(mint)
    const asJson = await run(`${mint} --json`)
    const { token } = JSON.parse(asJson.out)
    for (const input of [`${token}\n`, `Bearer ${token}`, `Authorization: Bearer ${token}\n`, text.out, asJson.out]) {
      for (const args of ['token verify', 'token verify -']) {
        expect(await run(args, { input })).toMatchObject({ code: 0, out: expect.stringContaining('"user_id": "ann"') })
      }
    }
  })

  test('the text form names the URL; behind a public URL it is that one', async () => {
    await makeKey()
    const { out } = await run(mint, { env: { RINGWIRE_PUBLIC_URL: 'https://calls.example.com' } })
    expect(out).toMatch(/Token +eyJ/)
    expect(out).toContain('wss://calls.example.com/v1/ws')
    expect((await run(`${mint} --json`, { env: { RINGWIRE_PORT: '0' } })).out).toContain('"ws_url": null')
  })

  test('verify says why not: 3, and nothing of the token or of a secret', async () => {
    await makeKey()
    const { token, signed_by } = await json<{ token: string; signed_by: { kid: string } }>(`${mint} --ttl 1`)
    const key = readFileSync(secretsFile(), 'utf8').trim().split(':')[1] ?? ''
    for (const [text, reason, options] of [
      [
        token,
        /^The token is authentic, but expired since 2026-01-01T00:00:01\.000Z\. It was for user ann, role customer, product shop\.$/m,
        { now: Date.UTC(2026, 0, 2) },
      ],
      [token.slice(0, -2), /^The signature is not one of the key k\w+ that is here: /, {}],
      ['rubbish', /^The token is malformed: /, {}],
      [
        token,
        new RegExp(`^The token is signed by an unknown kid, "${signed_by.kid}"\\. Known here: other\\.`),
        { env: { RINGWIRE_JWT_SECRETS: `other:${'A'.repeat(43)}` } },
      ],
    ] as const) {
      const { code, out, err } = await run(`token verify ${text}`, options)
      expect([code, out, err]).toEqual([3, '', expect.stringMatching(reason)])
      expect(err).toMatch(/^Looked at with the keys of .*(jwt-secrets|RINGWIRE_JWT_SECRETS)\.$/m)
      for (const part of [...text.split('.').filter((part) => part.length > 10), key]) expect(err).not.toContain(part)
    }
  })

  test('a product without a key is refused, with what to do, and no secrets are made', async () => {
    await run('keys create --product other --key-id k')
    const refused = await run(mint)
    expect(refused).toMatchObject({ code: 1, out: '' })
    expect(refused.err).toBe(
      `The product shop has no key in ${dataDir}, so no token is signed. Products with a key: other. To make one: ringwire keys create --product shop\n`,
    )
    await run('keys create --product shop --key-id mine')
    await run('keys disable mine')
    expect((await run(mint)).err).toContain('To enable one: ringwire keys enable mine\n')
    expect(existsSync(secretsFile())).toBe(false)
    await run('keys enable mine')
    expect((await run(mint)).code).toBe(0)
  })

  test('where no service has been, nothing is signed, verified or made', async () => {
    rmSync(dataDir, { recursive: true })
    const refused = await run(mint)
    expect(refused).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining(`at ${dataDir} (RINGWIRE_DATA_DIR)`),
    })
    expect(await run('token verify a.b.c')).toMatchObject({ code: 3, err: expect.stringContaining('There is no') })
    // A key of the environment is one, but the secrets have to be there, too.
    const env = { RINGWIRE_BOOTSTRAP_KEYS: `k:${'s'.repeat(32)}:shop` }
    expect(await run(mint, { env })).toMatchObject({ code: 3, err: expect.stringContaining('There is no') })
    expect(existsSync(dataDir)).toBe(false)
    const both = { ...env, RINGWIRE_JWT_SECRETS: `mine:${'A'.repeat(43)}` }
    const signed = await json<{ signed_by: object }>(mint, { env: both })
    expect(signed.signed_by).toEqual({ kid: 'mine', secrets: 'RINGWIRE_JWT_SECRETS' })
    expect(existsSync(dataDir)).toBe(false)
  })
})

describe('call history', () => {
  test('the calls of a participant, as text and as the REST answer', async () => {
    const stores = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: true })
    for (const step of callLife()) await step(stores.calls)
    const [ann, bob] = [
      { product: 'shop', role: 'customer', userId: 'ann' },
      { product: 'shop', role: 'agent', userId: 'bob' },
    ]
    const callUuid = crypto.randomUUID()
    await stores.calls.invite(ann, bob, callUuid, (situation) =>
      decideInvite(
        situation,
        {
          actor: actorOf(ann),
          callee: bob,
          callUuid,
          freshUuid: crypto.randomUUID(),
          contextType: 'c',
          contextId: '1',
          callType: 'audio',
          ringTimeoutMs: 45_000,
          metadata: null,
          rate: { ok: true },
          maxRinging: 5,
          busy: 'allow',
        },
        Date.now(),
      ),
    )
    await stores.close()
    const args = 'call history --product shop --user ann --role customer'
    const page = await json<{ data: object[] }>(args)
    expect(page).toMatchObject({
      success: true,
      next_cursor: null,
      data: [{ call_uuid: callUuid, direction: 'outgoing' }],
    } as never)
    expect((await run(args)).out).toContain(callUuid)
    expect(await run('call history --product shop --user nobody --role x')).toMatchObject({
      code: 0,
      out: '',
      err: 'No calls.\n',
    })
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
    expect(err).toContain('The configuration is good.')
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
    expect(err).not.toContain('The configuration is good.')
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
  for (const args of ['keys create --product shop', 'products set shop --busy reject']) {
    expect((await run(args)).code).toBe(0)
    rmSync(dataDir, { recursive: true })
  }
})

test('a data directory that cannot be used: 1, and one line', async () => {
  const file = join(dataDir, 'file')
  writeFileSync(file, '')
  const { code, err } = await run('keys create --product shop', { env: { RINGWIRE_DATA_DIR: join(file, 'below') } })
  expect(code).toBe(1)
  expect(err.trim().split('\n')).toHaveLength(1)
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
