import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, createBox, direct, type Running, throughNode } from './command.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

/** Root may do everything: here it may do what the owner of a file may. */
const capabilities = '-dac_override,-dac_read_search'
const asOwner =
  process.getuid?.() === 0
    ? ['setpriv', `--bounding-set=${capabilities}`, `--inh-caps=${capabilities}`, ...direct]
    : direct

const good = {
  context_type: 'order',
  context_id: '17',
  user_id: 'ann',
  role: 'customer',
  display_name: 'Ann',
  allowed_peer_role: 'agent',
}
async function askToken(
  { url }: Running,
  keyId: string,
  secret: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret },
    body: JSON.stringify(good),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

for (const [name, program] of [
  ['Bun', direct],
  ['the launcher on Node', throughNode],
] as const) {
  describe(`by ${name}`, () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      test(`serve prints one line on stdout, answers, and ends with 0 on ${signal}`, async () => {
        const service = await box.serve({ program })
        expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
        service.signal(signal)
        const { code, out, err } = await service.ended
        expect([code, out]).toEqual([0, `Ringwire listens on ${service.url}\n`])
        for (const line of err.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
        expect(await fetch(`${service.url}/readyz`).catch(() => 'gone')).toBe('gone')
      })
    }

    test('arguments, output and exit codes come through', async () => {
      expect(await box.run('tokne', { program })).toMatchObject({
        code: 2,
        err: expect.stringContaining('mean token?'),
      })
      expect(await box.run('version', { program })).toMatchObject({ code: 0, out: expect.stringMatching(/^ringwire /) })
      expect(await box.run('keys create', { program })).toMatchObject({ code: 2, out: '' })
      expect(await box.run('keys create --product shop', { program })).toMatchObject({ code: 0 })
      expect(await box.run('keys disable no', { program })).toMatchObject({
        code: 3,
        err: expect.stringContaining('There is no key no. Keys: key_'),
      })
      const failed = await box.run('serve', { program, env: { RINGWIRE_PORT: 'x', RINGWIRE_DEMO: 'y' } })
      expect(failed).toMatchObject({ code: 1, out: '' })
      expect(failed.err.trim().split('\n')).toHaveLength(2)
    })
  })
}

describe('beside a running service', () => {
  test('a key made, rotated or disabled on the command line counts at once', async () => {
    const service = await box.serve()
    const { key_id, secret } = JSON.parse((await box.run('keys create --product shop --json')).out)
    expect((await askToken(service, key_id, secret)).status).toBe(200)
    const rotated = JSON.parse((await box.run(`keys rotate ${key_id} --grace 0 --json`)).out)
    expect((await askToken(service, key_id, secret)).body).toMatchObject({
      error: { code: 'PRODUCT_AUTH_INVALID_SECRET' },
    })
    expect((await askToken(service, key_id, rotated.secret)).status).toBe(200)
    await box.run(`keys disable ${key_id}`)
    expect((await askToken(service, key_id, rotated.secret)).body).toMatchObject({
      error: { code: 'PRODUCT_AUTH_INVALID_KEY' },
    })
  })

  test('a token of the command line is one of the service, and the other way round', async () => {
    const env = { RINGWIRE_BOOTSTRAP_KEYS: 'k:0123456789012345678901234567890123:shop' }
    const service = await box.serve({ env })
    const minted = await box.run('token --product shop --user ann --role customer --peer-role agent --json')
    const { token } = JSON.parse(minted.out)
    const history = await fetch(`${service.url}/v1/calls/history`, { headers: { Authorization: `Bearer ${token}` } })
    expect(history.status).toBe(200)
    const { body } = await askToken(service, 'k', '0123456789012345678901234567890123')
    const verified = await box.run(`token verify ${String(body.token)}`)
    expect([verified.code, JSON.parse(verified.out).user_id]).toEqual([0, 'ann'])
    expect((await box.run('call history --product shop --user ann --role customer')).code).toBe(0)
    const piped = await box.run('token verify', { input: minted.out })
    expect([piped.code, JSON.parse(piped.out).user_id]).toEqual([0, 'ann'])
  })

  test('a token for a product without a key is refused, and so is one where no service has been', async () => {
    await box.serve()
    const mint = 'token --product shop --user ann --role customer --peer-role agent'
    expect(await box.run(mint)).toMatchObject({ code: 1, out: '', err: expect.stringContaining('keys create') })
    const nowhere = join(box.dataDir, 'nowhere')
    const env = { RINGWIRE_DATA_DIR: nowhere }
    expect(await box.run(mint, { env })).toMatchObject({ code: 1, out: '', err: expect.stringContaining(nowhere) })
    expect(await box.run('token verify a.b.c', { env })).toMatchObject({ code: 3, out: '' })
    expect(existsSync(nowhere)).toBe(false)
  })

  test('the port is taken: 1, and a line that says so', async () => {
    const service = await box.serve()
    const other = createBox()
    try {
      const { code, out, err } = await other.run('serve', { env: { RINGWIRE_PORT: new URL(service.url).port } })
      expect([code, out]).toEqual([1, ''])
      const by = process.platform === 'linux' ? ` by \\S+ \\(pid ${service.pid}\\)` : ''
      expect(err).toMatch(
        new RegExp(
          `^Ringwire did not start on 127\\.0\\.0\\.1:(\\d+): port \\1 is in use${by}\\. .*RINGWIRE_PORT`,
          'm',
        ),
      )
    } finally {
      await other.clean()
    }
  })

  test.skipIf(process.platform === 'win32')(
    'a data directory that this account may not enter, or not write to: 1, and one line that says so',
    async () => {
      for (const [mode, verb] of [
        [0o000, 'enter'],
        [0o555, 'write to'],
      ] as const) {
        const closed = join(box.dataDir, `closed-${mode}`)
        mkdirSync(closed)
        chmodSync(closed, mode)
        for (const args of ['serve', 'config check', 'keys list']) {
          const { code, err } = await box.run(args, { program: asOwner, env: { RINGWIRE_DATA_DIR: closed } })
          expect([args, code]).toEqual([args, 1])
          const isThere = args === 'keys list' && verb !== 'enter'
          expect(err).toEqual(
            isThere
              ? expect.stringContaining(`There is no data directory of a service at ${closed}`)
              : `The data directory ${closed} (RINGWIRE_DATA_DIR) cannot be used: this account may not ${verb} ${closed}\n`,
          )
        }
        chmodSync(closed, 0o700)
      }
      // Nothing is written to one that has the secrets already, where calls are elsewhere.
      const mounted = join(box.dataDir, 'mounted')
      mkdirSync(mounted)
      writeFileSync(join(mounted, 'jwt-secrets'), `k:${'A'.repeat(43)}\n`, { mode: 0o600 })
      chmodSync(mounted, 0o555)
      const env = { RINGWIRE_DATA_DIR: mounted, DATABASE_URL: 'postgres://ringwire@127.0.0.1/ringwire' }
      const checked = await box.run('config check', { program: asOwner, env })
      // Nothing listens there.
      expect([checked.code, checked.err]).toEqual([1, expect.stringContaining('PostgreSQL: ')])
      expect(checked.err).not.toContain('RINGWIRE_DATA_DIR')
      chmodSync(mounted, 0o700)
    },
  )

  test.skipIf(process.platform === 'win32')(
    'TLS files that this account may not read are named once, and not judged',
    async () => {
      const hidden = join(box.dataDir, 'hidden.pem')
      writeFileSync(hidden, 'no certificate', { mode: 0o000 })
      const env = { RINGWIRE_TLS_CERT: hidden, RINGWIRE_TLS_KEY: hidden }
      const { code, err } = await box.run('config check', { program: asOwner, env })
      expect(code).toBe(1)
      expect(err.match(/RINGWIRE_TLS_(CERT|KEY) (names no readable file|holds no)/g)).toEqual([
        'RINGWIRE_TLS_CERT names no readable file',
        'RINGWIRE_TLS_KEY names no readable file',
      ])
    },
  )

  test('the data directory is served already: 1, and the first goes on', async () => {
    const service = await box.serve()
    const second = await box.run('serve')
    expect([second.code, second.out]).toEqual([1, ''])
    const why = `Another ringwire process (pid ${service.pid}) uses ${box.dataDir}/.`
    const remedy = 'Stop it, or set RINGWIRE_DATA_DIR to another folder and RINGWIRE_PORT to another port.'
    expect(second.err).toContain(`Ringwire did not start on 127.0.0.1:0: ${why} ${remedy}\n`)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    // Near the folder of the command its name is short.
    const near = await box.run('serve', { program: ['env', '-C', join(box.dataDir, '..'), ...direct] })
    expect(near.err).toContain(`(pid ${service.pid}) uses ${box.dataDir.split('/').at(-1)}/. Stop it`)
    // After kill -9 the number stays behind, and names nobody.
    service.signal('SIGKILL')
    await service.ended
    const third = await box.serve()
    expect((await box.run('serve')).err).toContain(`(pid ${third.pid})`)
  })

  test('the demo prints its address before any line of the log, and a start that fails no such line', async () => {
    const demo = { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: box.dataDir, RINGWIRE_DEMO: '1' }
    const command = (port: string, more: Record<string, string> = {}) =>
      Bun.spawn(['sh', '-c', 'exec "$@" 2>&1', 'sh', ...direct, 'serve'], {
        env: { ...demo, RINGWIRE_PORT: port, ...more },
        stdin: 'ignore',
        stdout: 'pipe',
      })
    const first = command('0')
    let said = ''
    for await (const bytes of first.stdout.pipeThrough(new TextDecoderStream())) {
      said += bytes
      if (said.includes('"listening"')) break
    }
    const [address = '', open = '', ...log] = said.split('\n')
    expect(address).toMatch(/^Ringwire listens on http:/)
    expect(open).toMatch(/^Open http:.* in two browser tabs/)
    expect(log.filter(Boolean).map((line) => typeof JSON.parse(line))).toContain('object')
    const second = await new Response(command('0').stdout).text()
    expect(second).toMatch(/^Ringwire did not start on [^\n]+\(pid \d+\)[^\n]+\n$/)
    // A setting that is misspelled may be why it did not start.
    const third = await new Response(command('0', { RINGWIRE_PROT: '8932' }).stdout).text()
    expect(third).toMatch(/^warning: RINGWIRE_PROT is not a setting [^\n]+\nRingwire did not start on [^\n]+\n$/)
    first.kill('SIGKILL')
    await first.exited
  })
})

describe('starts', () => {
  test('the same JWT keys after a restart, and bootstrap keys follow their list', async () => {
    const secret = '0123456789012345678901234567890123'
    const first = await box.serve({ env: { RINGWIRE_BOOTSTRAP_KEYS: `a:${secret}:shop;b:${secret}:shop` } })
    const [ofA, ofB] = [await askToken(first, 'a', secret), await askToken(first, 'b', secret)]
    first.signal('SIGTERM')
    await first.ended
    const fresh = 'abcdefghijklmnopqrstuvwxyzabcdefgh'
    const second = await box.serve({ env: { RINGWIRE_BOOTSTRAP_KEYS: `b:${fresh}:shop` } })
    const historyWith = async ({ body }: typeof ofA) => {
      const headers = { Authorization: `Bearer ${String(body.token)}` }
      return (await fetch(`${second.url}/v1/calls/history`, { headers })).status
    }
    expect(await historyWith(ofB)).toBe(200)
    // Its key is not listed any more [KEY1].
    expect(await historyWith(ofA)).toBe(401)
    expect((await askToken(second, 'a', secret)).body).toMatchObject({ error: { code: 'PRODUCT_AUTH_INVALID_KEY' } })
    // The client does not know the new secret yet.
    for (const known of [secret, fresh]) expect((await askToken(second, 'b', known)).status).toBe(200)
  })

  test('RINGWIRE_DEMO=1 makes a key and says what to open; on another address it refuses', async () => {
    const demo = await box.serve({ env: { RINGWIRE_DEMO: '1' } })
    const secret = readFileSync(join(box.dataDir, 'demo-secret'), 'utf8').trim()
    expect((await askToken(demo, 'demo', secret)).status).toBe(200)
    demo.signal('SIGTERM')
    const { out } = await demo.ended
    expect(out.split('\n')[1]).toContain(`${demo.url}/demo/`)
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    expect(out).not.toContain(secret)
    const listed = await box.run('keys list')
    expect(listed.out).toMatch(/demo +demo +enabled +demo/)
    expect(listed.err).toBe('demo is refused by a service without RINGWIRE_DEMO.\n')
    const plain = await box.serve()
    expect(await askToken(plain, 'demo', secret)).toMatchObject({
      status: 401,
      body: { error: { code: 'PRODUCT_AUTH_INVALID_KEY' } },
    })
    const refused = await box.run('serve', { env: { RINGWIRE_DEMO: '1', RINGWIRE_HOST: '0.0.0.0' } })
    expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('RINGWIRE_DEMO') })
  })

  test('RINGWIRE_DEMO=1 with several workers is refused with one line, before a store is asked', async () => {
    const env = {
      RINGWIRE_DEMO: '1',
      DATABASE_URL: 'postgres://127.0.0.1:1/calls',
      REDIS_URL: 'redis://127.0.0.1:1',
      RINGWIRE_JWT_SECRETS: `k:${'A'.repeat(43)}`,
    }
    const refused = await box.run('serve --workers 2', { env })
    expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^RINGWIRE_DEMO [^\n]+\n$/) })
  })

  test('long output is whole, also through a pipe', async () => {
    const products = Array.from({ length: 300 }, (_, i) => `--product ${'p'.repeat(240)}${i}`).join(' ')
    await box.run(`keys create --key-id many ${products}`)
    const { out } = await box.run('keys list --json')
    expect(out.length).toBeGreaterThan(70_000)
    expect(JSON.parse(out)[0].products).toHaveLength(300)
  })
})
