import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { describeConfig, isLoopbackHost, loadConfig, settingRows } from './config.ts'
import { oddTimes } from './contradictions.ts'

function load(env: Record<string, string>) {
  const loaded = loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded.config
}

function problems(env: Record<string, string>): readonly string[] {
  const loaded = loadConfig(env)
  return loaded.ok ? [] : loaded.problems
}

describe('defaults', () => {
  test('an empty environment gives the documented defaults', () => {
    const { nodeId, ...config } = load({})
    expect(nodeId).toMatch(/^[0-9a-f]{16}$/)
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      workers: 1,
      publicUrl: null,
      dataDir: './data',
      sqliteSynchronous: 'FULL',
      jwtSecrets: null,
      bootstrapKeys: [],
      tokenTtlS: 3600,
      tokenGraceMs: 30_000,
      ringTimeoutMs: 45_000,
      callerLostMs: 20_000,
      peerLostMs: 120_000,
      maxCallMs: 43_200_000,
      resumeWindowMs: 120_000,
      drainMs: 10_000,
      pingIntervalMs: 25_000,
      pongTimeoutMs: 10_000,
      probeTimeoutMs: 3_000,
      tokenRateIp: { count: 6000, seconds: 60 },
      tokenFailRateIp: { count: 20, seconds: 60 },
      tokenRateKey: { count: 6000, seconds: 60 },
      inviteRate: { count: 30, seconds: 60 },
      pairInviteRate: { count: 30, seconds: 60 },
      maxRinging: 5,
      maxUnsentMib: 256,
      maxSockets: 20,
      connectRate: { count: 40, seconds: 10 },
      restRateIp: { count: 1000, seconds: 10 },
      restRate: { count: 120, seconds: 60 },
      wsRate: { perSecond: 20, burst: 200 },
      stunUrls: [],
      turnUrls: [],
      turnSecrets: null,
      turnUsername: null,
      turnCredential: null,
      trustProxy: null,
      tlsCert: null,
      tlsKey: null,
      allowedOrigins: null,
      adminPort: null,
      adminHost: '127.0.0.1',
      adminTokens: null,
      demo: false,
      logLevel: 'info',
    })
  })

  test('a variable that is empty or blank counts as unset', () => {
    expect(load({ RINGWIRE_PORT: '', RINGWIRE_PUBLIC_URL: '  ', DATABASE_URL: '' }).port).toBe(8080)
  })

  test('two processes have different node ids, and a given one stays', () => {
    expect(load({}).nodeId).not.toBe(load({}).nodeId)
    expect(load({ RINGWIRE_NODE_ID: 'one' }).nodeId).toBe('one')
  })
})

describe('values', () => {
  test('every duration can be one millisecond, for tests', () => {
    // A connection that is kept for less than a second is no use to anybody [HTTP2].
    const all = settingRows().filter(({ name, unit }) => unit !== '' && name !== 'RINGWIRE_HTTP_IDLE_MS')
    for (const { name, unit } of all) {
      expect(problems({ [name]: '1' })).toEqual([])
      // A node that stops may also close everything at once.
      const none =
        name === 'RINGWIRE_DRAIN_MS' ? [] : [expect.stringContaining(`${name} must be a whole number from 1`)]
      expect(problems({ [name]: '0' })).toEqual(none)
      expect(['ms', 's']).toContain(unit)
    }
  })

  test('several workers are nodes: a number or auto, with Redis', () => {
    const shared = {
      DATABASE_URL: 'postgres://127.0.0.1/calls',
      REDIS_URL: 'redis://127.0.0.1',
      RINGWIRE_JWT_SECRETS: `k:${Buffer.alloc(32, 1).toString('base64url')}`,
    }
    expect(load({ ...shared, RINGWIRE_WORKERS: '4' }).workers).toBe(4)
    expect(load({ ...shared, RINGWIRE_WORKERS: 'auto' }).workers).toBe(availableParallelism())
    expect(load({ RINGWIRE_WORKERS: '1' }).workers).toBe(1)
    for (const value of ['0', '-1', '2.5', 'all', '257']) {
      expect(problems({ ...shared, RINGWIRE_WORKERS: value })).toEqual([
        'RINGWIRE_WORKERS must be a whole number from 1 to 256, or auto',
      ])
    }
    const { REDIS_URL: _, ...alone } = shared
    for (const env of [alone, {}]) {
      expect(problems({ ...env, RINGWIRE_WORKERS: '2' })).toEqual([
        'RINGWIRE_WORKERS over 1 needs REDIS_URL and DATABASE_URL: each worker is a node',
      ])
    }
  })

  test('rates are count/seconds or off', () => {
    expect(load({ RINGWIRE_TOKEN_RATE_IP: '5/2', RINGWIRE_INVITE_RATE: 'off' })).toMatchObject({
      tokenRateIp: { count: 5, seconds: 2 },
      inviteRate: null,
    })
    expect(load({ RINGWIRE_WS_RATE: '1/2' }).wsRate).toEqual({ perSecond: 1, burst: 2 })
    expect(load({ RINGWIRE_WS_RATE: 'off' }).wsRate).toBeNull()
    for (const name of ['RINGWIRE_TOKEN_RATE_KEY', 'RINGWIRE_WS_RATE']) {
      for (const value of ['5', '0/1', '1/0', '5/x', '-1/2', '1.5/2', '5/2/1', 'OFF']) {
        expect(problems({ [name]: value })).toEqual([expect.stringContaining(name)])
      }
    }
  })

  test('the public URL keeps its path and loses its trailing slash', () => {
    expect(load({ RINGWIRE_PUBLIC_URL: 'https://Calls.Example.com/' }).publicUrl).toBe('https://calls.example.com')
    expect(load({ RINGWIRE_PUBLIC_URL: 'http://x.test:81/a/b//' }).publicUrl).toBe('http://x.test:81/a/b')
    for (const value of [
      'calls.example.com',
      'wss://x',
      'https://u:p@x',
      'https://x/?a=1',
      'https://x/#a',
      'http://',
    ]) {
      expect(problems({ RINGWIRE_PUBLIC_URL: value })).toEqual([expect.stringContaining('RINGWIRE_PUBLIC_URL')])
    }
  })

  test('[ICE1] STUN and TURN URLs', () => {
    const config = load({
      RINGWIRE_STUN_URLS: 'stun:a.test, stuns:b.test:5349 ,stun:[2001:db8::1]:3478',
      RINGWIRE_TURN_URLS: 'turn:c.test:3478?transport=udp,turns:c.test:443?transport=tcp,turn:1.2.3.4',
      RINGWIRE_TURN_SECRET: 'shared',
    })
    expect(config.stunUrls).toEqual(['stun:a.test', 'stuns:b.test:5349', 'stun:[2001:db8::1]:3478'])
    expect(config.turnUrls).toHaveLength(3)
    for (const value of ['turn:a', 'http://a', 'stun://a', 'stun:a?transport=udp', 'stun:', 'stun:a b']) {
      expect(problems({ RINGWIRE_STUN_URLS: value })).toEqual([expect.stringContaining('RINGWIRE_STUN_URLS')])
    }
    for (const value of ['stun:a', 'turn:a?transport=sctp', 'turn:a?x=1']) {
      expect(problems({ RINGWIRE_TURN_URLS: value, RINGWIRE_TURN_SECRET: 'x' })).toHaveLength(1)
    }
  })

  test('[ICE1] credentials for no TURN server are a warning', () => {
    const fixed = { RINGWIRE_TURN_USERNAME: 'ann', RINGWIRE_TURN_CREDENTIAL: 'c' }
    for (const [env, name] of [
      [{ RINGWIRE_TURN_SECRET: 'one' }, 'RINGWIRE_TURN_SECRET'],
      [fixed, 'RINGWIRE_TURN_USERNAME'],
    ] as const) {
      expect(loadConfig(env)).toMatchObject({
        ok: true,
        warnings: [`${name} has no effect without RINGWIRE_TURN_URLS`],
      })
      expect(loadConfig({ ...env, RINGWIRE_TURN_URLS: 'turn:t' }).warnings).toEqual([])
      // What is wrong with the URLs is said already.
      expect(loadConfig({ ...env, RINGWIRE_TURN_URLS: 'x' }).warnings).toEqual([])
    }
  })

  test('[KEY1] two TURN secrets keep their order, and are a warning, for one of them is to go', () => {
    const turn = { RINGWIRE_TURN_URLS: 'turn:t' }
    expect(load({ ...turn, RINGWIRE_TURN_SECRET: 'one' }).turnSecrets).toEqual(['one'])
    expect(load({ ...turn, RINGWIRE_TURN_SECRET: 'new, old' }).turnSecrets).toEqual(['new', 'old'])
    expect(loadConfig({ ...turn, RINGWIRE_TURN_SECRET: 'one' }).warnings).toEqual([])
    expect(loadConfig({ ...turn, RINGWIRE_TURN_SECRET: 'new,old' }).warnings).toEqual([
      'RINGWIRE_TURN_SECRET: holds two secrets: credentials are made with the first',
    ])
    for (const value of ['a,b,c', 'hunter2,', ',hunter2']) {
      const [problem = ''] = problems({ ...turn, RINGWIRE_TURN_SECRET: value })
      expect(problem).toStartWith('RINGWIRE_TURN_SECRET must ')
      expect(problem).not.toContain('hunter2')
    }
  })

  test('[TOK2] JWT secrets keep their order; short, double and unreadable ones are refused without being shown', () => {
    const key = (byte: number) => Buffer.alloc(32, byte).toString('base64url')
    const [first, second] = load({ RINGWIRE_JWT_SECRETS: `new:${key(1)}, old:${key(2)}=` }).jwtSecrets ?? []
    expect([first?.kid, second?.kid]).toEqual(['new', 'old'])
    expect(first?.key).toEqual(Buffer.alloc(32, 1))
    const short = Buffer.alloc(31, 7).toString('base64url')
    for (const value of [`a:${short}`, `a:${key(1)},a:${key(2)}`, key(3), `a b:${key(3)}`, ',', `a:${key(3)}!`]) {
      const [problem = ''] = problems({ RINGWIRE_JWT_SECRETS: value })
      expect(problem).toStartWith('RINGWIRE_JWT_SECRETS ')
      expect(problem).not.toContain(key(3))
      expect(problem).not.toContain(short)
    }
  })

  test('bootstrap keys are split at the first and the last colon', () => {
    const long = 'x'.repeat(32)
    expect(
      load({ RINGWIRE_BOOTSTRAP_KEYS: `a:${long}:shop ; b:s:e:c:r:e:t${long}:one, two,one;` }).bootstrapKeys,
    ).toEqual([
      { keyId: 'a', secret: long, products: ['shop'] },
      { keyId: 'b', secret: `s:e:c:r:e:t${long}`, products: ['one', 'two'] },
    ])
    for (const value of [
      'a',
      'a:secret-text',
      ':s:p',
      'a::p',
      'a:secret-text:',
      'a:sé:p',
      'a:x:p;a:y:p',
      `a:s:${'p'.repeat(256)}`,
    ]) {
      const [problem = ''] = problems({ RINGWIRE_BOOTSTRAP_KEYS: value })
      expect(problem).toStartWith('RINGWIRE_BOOTSTRAP_KEYS ')
      expect(problem).not.toContain('secret-text')
    }
  })

  test('a bootstrap secret under 32 characters warns, without being shown', () => {
    const { warnings } = loadConfig({ RINGWIRE_BOOTSTRAP_KEYS: 'a:hunter2:shop' })
    expect(warnings).toEqual([expect.stringMatching(/^RINGWIRE_BOOTSTRAP_KEYS: .*\ba\b.*32/)])
    expect(warnings.join()).not.toContain('hunter2')
  })

  test('bootstrap keys with a comma between them warn: they would be one key', () => {
    const long = 'x'.repeat(32)
    const { warnings } = loadConfig({ RINGWIRE_BOOTSTRAP_KEYS: `a:hunter2${long}:shop,b:hunter3${long}:other` })
    expect(warnings).toEqual([expect.stringMatching(/^RINGWIRE_BOOTSTRAP_KEYS: .*\ba\b.*; separates keys/)])
    expect(warnings.join()).not.toContain('hunter')
  })

  test('trusted proxies are a number, or addresses and CIDRs', () => {
    expect(load({ RINGWIRE_TRUST_PROXY: '2' }).trustProxy).toEqual({ kind: 'hops', hops: 2 })
    expect(load({ RINGWIRE_TRUST_PROXY: '10.0.0.0/8, ::1' }).trustProxy).toEqual({
      kind: 'networks',
      networks: ['10.0.0.0/8', '::1'],
    })
    for (const value of ['true', '10.0.0.0/33', 'proxy.test', '-1', '300.1.1.1', ',']) {
      expect(problems({ RINGWIRE_TRUST_PROXY: value })).toEqual([expect.stringContaining('RINGWIRE_TRUST_PROXY')])
    }
  })

  test('[CONF1] origins are compared as browsers send them; one that no browser sends is refused', () => {
    const same: [string, string][] = [
      ['https://app.example.com:443', 'https://app.example.com'],
      ['http://app.example.com:80/', 'http://app.example.com'],
      ['HTTPS://APP.example.com:8443', 'https://app.example.com:8443'],
      ['https://müller.example', 'https://xn--mller-kva.example'],
      ['https://[2001:DB8:0::1]', 'https://[2001:db8::1]'],
      ['capacitor://localhost', 'capacitor://localhost'],
    ]
    for (const [written, sent] of same) {
      expect(load({ RINGWIRE_ALLOWED_ORIGINS: `${written}, ${sent}` }).allowedOrigins).toEqual([sent])
    }
    const never = [
      'https://*.example.com',
      '*',
      'wss://app.example.com',
      'file://x',
      'https://a.example:0',
      'https://a:99999',
    ]
    for (const origin of [...never, 'null', 'app.example.com', 'https://a.example/path', 'https://u@a.example']) {
      expect(problems({ RINGWIRE_ALLOWED_ORIGINS: origin })).toEqual([expect.stringContaining(JSON.stringify(origin))])
    }
  })

  test('[CONF1] ports of ICE servers are from 1 to 65535', () => {
    for (const port of ['0', '65536', '99999']) {
      expect(problems({ RINGWIRE_STUN_URLS: `stun:a.test:${port}` })).toEqual([
        expect.stringContaining('from 1 to 65535'),
      ])
      const turn = { RINGWIRE_TURN_URLS: `turn:a.test:${port}?transport=tcp`, RINGWIRE_TURN_SECRET: 'x' }
      expect(problems(turn)).toEqual([expect.stringContaining('from 1 to 65535')])
    }
    expect(problems({ RINGWIRE_STUN_URLS: 'stun:a.test:1,stun:[2001:db8::1]:65535,stun:b.test' })).toEqual([])
  })

  test('[CONF1] times that make no sense are told', () => {
    expect(oddTimes(load({}))).toEqual([])
    const odd = { RINGWIRE_DRAIN_MS: '0', RINGWIRE_PONG_TIMEOUT_MS: '26000', RINGWIRE_PROBE_TIMEOUT_MS: '27000' }
    expect(oddTimes(load(odd)).map((warning) => warning.split(' ')[0])).toEqual(Object.keys(odd))
  })

  test('[BAL1] rebalancing is off at first, and needs other nodes', () => {
    expect(load({}).rebalancePerSecond).toBe(0)
    const shared = {
      DATABASE_URL: 'postgres://127.0.0.1/calls',
      REDIS_URL: 'redis://127.0.0.1',
      RINGWIRE_JWT_SECRETS: `k:${Buffer.alloc(32, 1).toString('base64url')}`,
    }
    for (const count of [0, 1, 1000]) {
      const loaded = loadConfig({ ...shared, RINGWIRE_REBALANCE_PER_SECOND: String(count) })
      expect(loaded).toMatchObject({ ok: true, config: { rebalancePerSecond: count }, warnings: [] })
    }
    for (const value of ['-1', '1001', '0.5', 'on']) {
      expect(problems({ ...shared, RINGWIRE_REBALANCE_PER_SECOND: value })).toEqual([
        'RINGWIRE_REBALANCE_PER_SECOND must be a whole number from 0 to 1000',
      ])
    }
    const warned = 'RINGWIRE_REBALANCE_PER_SECOND has no effect without REDIS_URL: there are no other nodes'
    expect(loadConfig({ RINGWIRE_REBALANCE_PER_SECOND: '5' }).warnings).toContain(warned)
    expect(loadConfig({ RINGWIRE_REBALANCE_PER_SECOND: '0' }).warnings).not.toContain(warned)
  })

  test('a public key of Web Push without its private one is warned of', () => {
    const warned = 'RINGWIRE_VAPID_PUBLIC_KEY has no effect without RINGWIRE_VAPID_PRIVATE_KEY'
    expect(loadConfig({ RINGWIRE_VAPID_PUBLIC_KEY: 'BPub' }).warnings).toContain(warned)
    expect(loadConfig({}).warnings).not.toContain(warned)
  })

  test('[WS8] origins are compared in lower case', () => {
    const { allowedOrigins } = load({ RINGWIRE_ALLOWED_ORIGINS: 'https://App.example.com,capacitor://localhost' })
    expect(allowedOrigins).toEqual(['https://app.example.com', 'capacitor://localhost'])
    for (const value of ['app.example.com', 'https://x//', 'https://x/path', '*']) {
      expect(problems({ RINGWIRE_ALLOWED_ORIGINS: value })).toHaveLength(1)
    }
  })

  test('single choices', () => {
    expect(load({ RINGWIRE_SQLITE_SYNCHRONOUS: 'normal' }).sqliteSynchronous).toBe('NORMAL')
    expect(load({ RINGWIRE_DEMO: 'true' }).demo).toBe(true)
    for (const [name, value] of [
      ['RINGWIRE_SQLITE_SYNCHRONOUS', 'OFF'],
      ['RINGWIRE_LOG_LEVEL', 'loud'],
      ['RINGWIRE_DEMO', 'yes'],
      ['RINGWIRE_PORT', '65536'],
      ['RINGWIRE_PORT', '80a'],
      ['RINGWIRE_HOST', 'http://x'],
      ['RINGWIRE_TOKEN_TTL_S', '86401'],
      ['RINGWIRE_RING_TIMEOUT_MS', '180001'],
      ['RINGWIRE_PEER_LOST_MS', '1.5'],
      ['RINGWIRE_MAX_SOCKETS', '0'],
    ] as const) {
      expect(problems({ [name]: value })).toEqual([expect.stringContaining(name)])
    }
  })
})

describe('what belongs together', () => {
  test('all problems come at once, one line each, every line naming its variable', () => {
    const found = problems({
      RINGWIRE_PORT: 'x',
      RINGWIRE_TLS_CERT: 'a.pem',
      REDIS_URL: 'http://x',
      RINGWIRE_DEMO: '2',
    })
    expect(found).toHaveLength(4)
    for (const problem of found) {
      expect(problem).not.toContain('\n')
      expect(problem).toMatch(/^(RINGWIRE_PORT|RINGWIRE_TLS_KEY|REDIS_URL|RINGWIRE_DEMO) /)
    }
  })

  test('REDIS_URL is for nodes, which share a database and the secrets of their tokens', () => {
    const REDIS_URL = 'redis://user:pass@127.0.0.1'
    expect(problems({ REDIS_URL })).toEqual([
      expect.stringContaining('REDIS_URL needs DATABASE_URL'),
      expect.stringMatching(/^REDIS_URL needs RINGWIRE_JWT_SECRETS.*=k1:\$\(openssl rand -hex 32\)/),
    ])
    const [problem = ''] = problems({ REDIS_URL: 'redis://user:pass@host/db' })
    expect(problem).toContain('REDIS_URL has a path')
    expect(problem).not.toContain('pass')
    const DATABASE_URL = 'postgres://u:secret@127.0.0.1:5432/calls'
    const RINGWIRE_JWT_SECRETS = `one:${'A'.repeat(43)}`
    expect(loadConfig({ REDIS_URL, DATABASE_URL, RINGWIRE_JWT_SECRETS })).toMatchObject({ ok: true, warnings: [] })
  })

  test('DATABASE_URL names a PostgreSQL database; what is wrong with it never shows its password', () => {
    for (const url of [
      'postgres://u:secret@127.0.0.1:5432/calls',
      'postgresql://localhost/calls?sslmode=verify-full',
    ]) {
      expect(loadConfig({ DATABASE_URL: url })).toMatchObject({ ok: true, config: { databaseUrl: url }, warnings: [] })
    }
    for (const [url, problem] of [
      ['mysql://u:secret@h/calls', 'must be like postgres://'],
      ['secret', 'must be like postgres://'],
      ['postgres:///calls?password=secret', 'must be like postgres://'],
      ['postgres://u:secret@h', 'names no database'],
      ['postgres://u:secret@h/calls?sslmode=on', 'has an sslmode that is none of disable'],
    ] as const) {
      const [found = ''] = problems({ DATABASE_URL: url })
      expect(found).toContain(`DATABASE_URL ${problem}`)
      expect(found).not.toContain('secret')
    }
  })

  test('a database elsewhere without sslmode warns', () => {
    expect(loadConfig({ DATABASE_URL: 'postgres://u:secret@db.example.com/calls' }).warnings).toEqual([
      'DATABASE_URL: has no sslmode: the connection to the database is not encrypted',
    ])
  })

  test('calls are kept for 90 days, for as many as is said, or for ever', () => {
    const daysOf = (env: Record<string, string>) => {
      const loaded = loadConfig(env)
      return loaded.ok ? loaded.config.retentionDays : loaded.problems
    }
    expect(daysOf({})).toBe(90)
    expect(daysOf({ RINGWIRE_RETENTION_DAYS: '30' })).toBe(30)
    expect(daysOf({ RINGWIRE_RETENTION_DAYS: 'off' })).toBeNull()
    for (const value of ['0', 'never']) {
      expect(daysOf({ RINGWIRE_RETENTION_DAYS: value })).toEqual([
        'RINGWIRE_RETENTION_DAYS must be a whole number from 1 to 36500, or off',
      ])
    }
  })

  test('an unknown variable of Ringwire warns; others are nobody’s business', () => {
    const { warnings, ok } = loadConfig({
      RINGWIRE_PROT: '1',
      RINGWIRE_A: '',
      RINGWIRE_URL: 'x',
      PATH: '/bin',
      TOKEN: 'x',
    })
    expect(ok).toBe(true)
    expect(warnings).toEqual([
      'RINGWIRE_A is not a setting of Ringwire; it is ignored',
      'RINGWIRE_PROT is not a setting of Ringwire; it is ignored. Did you mean RINGWIRE_PORT?',
    ])
  })

  test('a problem with a secret says how to make one', () => {
    const madeSecrets = loadConfig({ RINGWIRE_JWT_SECRETS: `k1:${randomBytes(32).toString('hex')}` })
    expect(madeSecrets).toMatchObject({ ok: true, warnings: [] })
    for (const env of [
      { RINGWIRE_JWT_SECRETS: 'secret' },
      { RINGWIRE_JWT_SECRETS: 'k1:secret' },
      { RINGWIRE_JWT_SECRETS: ',' },
      { RINGWIRE_ADMIN_TOKEN: 'secret' },
      { RINGWIRE_ADMIN_PORT: '9464', RINGWIRE_ADMIN_HOST: '0.0.0.0' },
      { RINGWIRE_TURN_URLS: 'turn:turn.example.com' },
    ]) {
      expect(problems(env)).toEqual([expect.stringContaining('openssl rand -hex 32')])
    }
    const { warnings } = loadConfig({ RINGWIRE_BOOTSTRAP_KEYS: 'a:hunter2:shop' })
    expect(warnings).toEqual([expect.stringContaining('openssl rand -hex 32')])
    expect(problems({ RINGWIRE_VAPID_PRIVATE_KEY: 'x', RINGWIRE_VAPID_SUBJECT: 'mailto:a@example.com' })).toEqual([
      expect.stringContaining('ringwire vapid'),
    ])
  })

  test('a slip in the name of a variable leads to the one that was meant', () => {
    for (const [slip, meant] of [
      ['RINGWIRE_port', 'RINGWIRE_PORT'],
      ['RINGWIRE_JWT_SECRET', 'RINGWIRE_JWT_SECRETS'],
      ['RINGWIRE_JWT_SECRET_FILE', 'RINGWIRE_JWT_SECRETS_FILE'],
      ['RINGWIRE_REDIS_URL', 'REDIS_URL'],
      ['RINGWIRE_DATABASE_URL', 'DATABASE_URL'],
      ['RINGWIRE_KEYID', 'RINGWIRE_KEY_ID'],
      ['RINGWIRE_', undefined],
      ['RINGWIRE_NONSENSE', undefined],
    ] as const) {
      const hint = meant === undefined ? '' : `. Did you mean ${meant}?`
      expect(loadConfig({ [slip]: '1' }).warnings).toEqual([
        `${slip} is not a setting of Ringwire; it is ignored${hint}`,
      ])
    }
  })

  test('[ADM1] the listener for operators has a port of its own, and a token where others can reach it', () => {
    const token = { RINGWIRE_ADMIN_TOKEN: 'x'.repeat(16) }
    expect(problems({ RINGWIRE_ADMIN_PORT: '9464' })).toEqual([])
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'calls.example.com']) {
      const env = { RINGWIRE_ADMIN_PORT: '9464', RINGWIRE_ADMIN_HOST: host }
      expect(problems(env)).toEqual([expect.stringContaining('RINGWIRE_ADMIN_TOKEN')])
      expect(problems({ ...env, ...token })).toEqual([])
    }
    expect(problems({ RINGWIRE_ADMIN_PORT: '8080' })).toEqual([expect.stringContaining('RINGWIRE_PORT')])
    const [old, next] = ['x'.repeat(16), 'y'.repeat(16)]
    const both = loadConfig({ RINGWIRE_ADMIN_TOKEN: `${next}, ${old}` })
    expect(both.ok && both.config.adminTokens).toEqual([next, old])
    const [none, three] = [`${old},`, [old, next, old].join()]
    for (const bad of [
      none,
      three,
      `${next},short`,
      'short',
      'has a space in it, and is long',
      `${'x'.repeat(20)}\n`.repeat(2),
    ]) {
      const found = problems({ RINGWIRE_ADMIN_TOKEN: bad })
      expect(found).toEqual([expect.stringContaining('RINGWIRE_ADMIN_TOKEN')])
      expect(found.join()).not.toContain(bad)
    }
  })

  test('TLS and TURN need both of their halves', () => {
    const turn = { RINGWIRE_TURN_URLS: 'turn:a' }
    expect(problems({ RINGWIRE_TLS_KEY: 'k' })).toEqual([expect.stringContaining('RINGWIRE_TLS_CERT')])
    expect(problems(turn)).toEqual([expect.stringContaining('RINGWIRE_TURN_URLS')])
    expect(problems({ ...turn, RINGWIRE_TURN_USERNAME: 'u' })).toEqual([
      expect.stringContaining('RINGWIRE_TURN_CREDENTIAL'),
    ])
    expect(problems({ ...turn, RINGWIRE_TURN_CREDENTIAL: 'c' })).toEqual([
      expect.stringContaining('RINGWIRE_TURN_USERNAME'),
    ])
    expect(problems({ ...turn, RINGWIRE_TURN_USERNAME: 'u', RINGWIRE_TURN_CREDENTIAL: 'c' })).toEqual([])
    expect(
      problems({ ...turn, RINGWIRE_TURN_SECRET: 's', RINGWIRE_TURN_USERNAME: 'u', RINGWIRE_TURN_CREDENTIAL: 'c' }),
    ).toEqual([expect.stringContaining('RINGWIRE_TURN_SECRET')])
  })

  test('the demo refuses any host but this machine', () => {
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'example.com', '127.0.0.1.example.com']) {
      expect(problems({ RINGWIRE_DEMO: '1', RINGWIRE_HOST: host })).toEqual([expect.stringContaining('RINGWIRE_DEMO')])
    }
    for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) {
      expect(problems({ RINGWIRE_DEMO: '1', RINGWIRE_HOST: host })).toEqual([])
    }
  })

  test('the demo for local networks has any host, and https', () => {
    const tls = { RINGWIRE_TLS_CERT: 'cert.pem', RINGWIRE_TLS_KEY: 'key.pem' }
    expect(load({ ...tls, RINGWIRE_DEMO: 'lan', RINGWIRE_HOST: '0.0.0.0' }).demo).toBe('lan')
    expect(problems({ RINGWIRE_DEMO: 'lan', RINGWIRE_HOST: '0.0.0.0' })).toEqual([
      expect.stringContaining('RINGWIRE_TLS_CERT'),
    ])
    expect(problems({ ...tls, RINGWIRE_DEMO: 'wan' })).toEqual([expect.stringContaining('RINGWIRE_DEMO')])
  })

  test('the demo refuses several workers: each would know other people', () => {
    const shared = {
      DATABASE_URL: 'postgres://127.0.0.1/calls',
      REDIS_URL: 'redis://127.0.0.1',
      RINGWIRE_JWT_SECRETS: `k:${Buffer.alloc(32, 1).toString('base64url')}`,
    }
    // Without Redis too, for bringing one would not help.
    for (const env of [shared, {}]) {
      expect(problems({ ...env, RINGWIRE_DEMO: '1', RINGWIRE_WORKERS: '2' })).toEqual([
        expect.stringMatching(/^RINGWIRE_DEMO .*RINGWIRE_WORKERS must be 1$/),
      ])
    }
    expect(problems({ ...shared, RINGWIRE_DEMO: '1', RINGWIRE_WORKERS: '1' })).toEqual([])
    expect(problems({ ...shared, RINGWIRE_DEMO: '0', RINGWIRE_WORKERS: '2' })).toEqual([])
  })

  test('loopback hosts, as they are written in URLs', () => {
    for (const host of ['localhost', 'LOCALHOST', 'a.localhost', '[::1]', '127.0.0.1', 'localhost.']) {
      expect(isLoopbackHost(host)).toBe(true)
    }
    for (const host of ['', 'localhost.example.com', '128.0.0.1', '[::2]', '127.0.0']) {
      expect(isLoopbackHost(host)).toBe(false)
    }
  })
})

describe('documents', () => {
  test('every setting has a name of its own, a type, a default and a description', () => {
    const rows = settingRows()
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
    for (const { name, type, description, ...row } of rows) {
      expect(name).toMatch(/^(RINGWIRE_[A-Z_]+|OTEL_[A-Z_]+|DATABASE_URL|REDIS_URL)$/)
      expect(type).not.toBe('')
      expect(row.default).not.toBe('')
      expect(description).toEndWith('.')
    }
  })

  test('[LOG1] what is described never shows a secret', () => {
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA'
    const env = {
      RINGWIRE_JWT_SECRETS: `k:${secret}`,
      RINGWIRE_BOOTSTRAP_KEYS: `key:${secret}:shop`,
      RINGWIRE_TURN_SECRET: secret,
      RINGWIRE_TURN_CREDENTIAL: secret,
      DATABASE_URL: `postgres://user:${secret}@host/db`,
      REDIS_URL: `redis://:${secret}@host`,
      RINGWIRE_PORT: '1234',
    }
    expect(JSON.stringify(describeConfig(env))).not.toContain(secret)
    expect(describeConfig(env)).toContainEqual({ name: 'RINGWIRE_PORT', value: '1234', source: 'set' })
    expect(describeConfig(env)).toContainEqual({
      name: 'RINGWIRE_TURN_SECRET',
      value: '(set, not shown)',
      source: 'set',
    })
  })
})
