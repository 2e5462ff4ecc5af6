/** What `npm create ringwire` makes, asks and refuses, and what it does where a service runs. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRingwire } from '@ringwire/server-sdk'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { productKey, Service } from '@ringwire/testkit/service'
import { create, createInTerminal, readEnv, secretsIn } from './support/creating.ts'

let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>
let cwd = ''
beforeEach(async () => {
  directory = await makeTemporaryDirectory()
  cwd = directory.path
})
afterEach(() => directory.remove())

/** Nothing answers there, so that no service of this machine is found. */
const alone = { RINGWIRE_DATA_DIR: '/nowhere' }

describe('without a service', () => {
  test('both flavours are made, with secrets that only their owner may read and that nobody printed', async () => {
    for (const [flavour, page] of [
      ['react', 'main.tsx'],
      ['plain', 'main.ts'],
    ] as const) {
      const { code, out, err } = await create(
        { cwd, env: alone },
        flavour,
        `--${flavour}`,
        '--product',
        'shop',
        '--yes',
      )
      expect([code, err]).toEqual([0, ''])
      const folder = join(cwd, flavour)
      const files = [
        '.env',
        '.gitignore',
        'README.md',
        'backend.mjs',
        'calls.mjs',
        'package.json',
        'page',
        'people.mjs',
      ]
      expect(readdirSync(folder).sort()).toEqual([...files, 'service.mjs', 'start.mjs', 'tsconfig.json'])
      expect(readdirSync(join(folder, 'page')).sort()).toEqual(['index.html', page, 'style.css'])
      expect(statSync(join(folder, '.env')).mode & 0o777).toBe(0o600)
      expect(readFileSync(join(folder, '.gitignore'), 'utf8').split('\n')).toContain('.env')
      expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain('# shop\n')
      expect(readFileSync(join(folder, 'README.md'), 'utf8')).not.toContain('{{')
      const env = readEnv(folder)
      expect(env).toMatchObject({ RINGWIRE_KEY_ID: 'shop', RINGWIRE_KEY_SECRET: expect.stringMatching(/^[\w-]{43}$/) })
      for (const secret of secretsIn(readEnv(folder))) expect(out).not.toContain(secret)
      expect(out).toEndWith(`Next:\n  cd ${flavour} && npm install\n  npm start\n`)
    }
    expect(readEnv(join(cwd, 'react')).RINGWIRE_KEY_SECRET).not.toBe(readEnv(join(cwd, 'plain')).RINGWIRE_KEY_SECRET)
  })

  test('a folder that has files is refused, and stays as it is; an empty one is taken', async () => {
    for (const name of ['full', 'empty']) mkdirSync(join(cwd, name))
    writeFileSync(join(cwd, 'full', 'notes'), 'mine')
    const refused = await create({ cwd, env: alone }, 'full', '--yes')
    expect(refused).toMatchObject({ code: 2, out: '', err: expect.stringContaining('full has files.') })
    expect(readdirSync(join(cwd, 'full'))).toEqual(['notes'])
    expect((await create({ cwd, env: alone }, 'empty', '--yes')).code).toBe(0)
    const before = readFileSync(join(cwd, 'empty', '.env'), 'utf8')
    expect((await create({ cwd, env: alone }, 'empty', '--yes')).code).toBe(2)
    expect(readFileSync(join(cwd, 'empty', '.env'), 'utf8')).toBe(before)
    writeFileSync(join(cwd, 'file'), '')
    expect(await create({ cwd, env: alone }, 'file', '--yes')).toMatchObject({ code: 2 })
  })

  test('what is not given is asked, and the answers count', async () => {
    const { code, screen } = await createInTerminal(cwd, async (sees, write) => {
      await sees(/Folder \(ringwire-app\)/)
      write('calls\r')
      await sees(/Page \(react or plain/)
      write('plain\r')
      await sees(/Product \(calls\)/)
      write('\r')
      await sees(/Next:|Use it\?/)
      write('n\r')
    })
    expect(screen).toContain('cd calls && npm install')
    expect(code).toBe(0)
    expect(readEnv(join(cwd, 'calls'))).toMatchObject({ PRODUCT: 'calls', RINGWIRE_URL: '' })
    expect(readdirSync(join(cwd, 'calls', 'page'))).toContain('main.ts')
  })

  test('Ctrl-C at any question leaves nothing', async () => {
    const answers = [/Folder \(ringwire-app\)/, /Page \(react or plain/, /Product \(ringwire-app\)/]
    for (let at = 0; at < answers.length; at++) {
      const { code, screen } = await createInTerminal(cwd, async (sees, write) => {
        for (const [index, question] of answers.slice(0, at + 1).entries()) {
          await sees(question)
          write(index < at ? '\r' : '\u0003')
        }
      })
      expect([at, code, readdirSync(cwd)]).toEqual([at, 130, []])
      expect(screen).toContain('Nothing was made.')
    }
  })

  test('a service that was named and does not answer is an error, and nothing is made', async () => {
    for (const [service, message] of [
      ['http://127.0.0.1:1', 'No service answers at http://127.0.0.1:1.'],
      ['nowhere', 'No service runs in nowhere.'],
    ] as const) {
      const { code, err } = await create({ cwd, env: alone }, 'app', '--yes', '--service', service)
      expect([code, err.replace(`${cwd}/`, '')]).toEqual([2, `${message}\n`])
    }
    expect(readdirSync(cwd)).toEqual([])
  })
})

describe('with a service', () => {
  let service: Service
  beforeAll(async () => {
    service = await new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' }).start()
  })
  afterAll(() => service.dispose())

  const sdkOf = ({ RINGWIRE_URL: url = '', RINGWIRE_KEY_ID: keyId = '', RINGWIRE_KEY_SECRET: secret = '' }) =>
    createRingwire({ url, keyId, secret })

  /** It is found by RINGWIRE_DATA_DIR, by the current folder, and by --service. */
  const ways = (): [string, Parameters<typeof create>[0], string[]][] => [
    ['settings', { cwd, env: { RINGWIRE_DATA_DIR: service.dataDir } }, []],
    ['here', { cwd: service.dataDir }, []],
    ['folder', { cwd, env: alone }, ['--service', service.dataDir]],
    ['url', { cwd, env: { RINGWIRE_DATA_DIR: service.dataDir } }, ['--service', `${service.url}/`]],
  ]

  test('a key, an endpoint and the decision on invites are made there, and no secret is printed', async () => {
    for (const [way, where, more] of ways()) {
      const folder = join(cwd, way)
      const { code, out, err } = await create(
        where,
        folder,
        '--yes',
        '--product',
        `shop-${way}`,
        '--port',
        '4100',
        ...more,
      )
      expect([way, code, err]).toEqual([way, 0, ''])
      const env = readEnv(folder)
      expect(env).toMatchObject({ RINGWIRE_URL: service.url, PRODUCT: `shop-${way}`, PORT: '4100' })
      const ringwire = sdkOf(env)
      const [endpoint, ...others] = await ringwire.webhooks.list()
      expect([endpoint?.url, others]).toEqual(['http://127.0.0.1:4100/webhooks', []])
      expect(await ringwire.product.get()).toMatchObject({
        ...{ product: `shop-${way}`, invite_url: 'http://127.0.0.1:4100/invites', invite_failure: 'allow' },
      })
      expect(secretsIn(env)).toHaveLength(3)
      for (const secret of secretsIn(env)) expect(out).not.toContain(secret)
      for (const said of [env.RINGWIRE_KEY_ID ?? '', endpoint?.id ?? '', service.url]) expect(out).toContain(said)
    }
  })

  test('a product that has another key keeps who decides on its invites, and an endpoint with the same URL is taken', async () => {
    const where = { cwd, env: { RINGWIRE_DATA_DIR: service.dataDir } }
    const made = []
    for (const name of ['one', 'two']) {
      made.push(await create(where, name, '--yes', '--product', 'shop', '--port', '4200'))
    }
    const [one, two] = ['one', 'two'].map((name) => readEnv(join(cwd, name)))
    expect(one?.RINGWIRE_KEY_ID).not.toBe(two?.RINGWIRE_KEY_ID)
    expect(await sdkOf(two ?? {}).webhooks.list()).toHaveLength(1)
    expect([one?.INVITE_SECRET, (await sdkOf(two ?? {}).product.get()).invite_url]).toEqual(['', null])
    expect(made[1]?.out).toContain('products set shop --invite-url http://127.0.0.1:4200/invites')
    expect(made[1]?.out).toContain('A webhook endpoint with this URL got a new secret')
  })

  test('where the files cannot be written, what was made at the service is taken back', async () => {
    // The folder fits into the 4,095 bytes of a path, and no file in it does.
    const folder = join(cwd, `${'x'.repeat(200)}/`.repeat(30)).slice(0, 4_090)
    const where = { cwd, env: { RINGWIRE_DATA_DIR: service.dataDir } }
    const { code } = await create(where, folder, '--yes', '--product', 'unwritten')
    expect(code).toBe(1)
    const keys = Bun.spawnSync([join(rootBin, 'ringwire'), 'keys', 'list', '--json'], {
      env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir },
    })
    const all = JSON.parse(keys.stdout.toString()) as { products: string[]; state: string }[]
    expect(all.filter(({ products }) => products.includes('unwritten')).map(({ state }) => state)).toEqual(['disabled'])
  })

  test('where no key may be made, the commands are printed, and the application has a service of its own', async () => {
    const without = { RINGWIRE_DATA_DIR: service.dataDir, PATH: pathWithout() }
    const found = await create({ cwd, env: without }, 'one', '--yes')
    expect([found.code, found.err]).toEqual([0, ''])
    expect(found.out).toContain('The command ringwire was not found.')
    expect(readEnv(join(cwd, 'one'))).toMatchObject({ RINGWIRE_URL: '', RINGWIRE_KEY_ID: 'one' })
    const named = await create({ cwd, env: alone }, 'two', '--yes', '--service', service.url)
    expect([named.code, named.err]).toEqual([0, ''])
    expect(named.out).toContain('Its data was not found')
    expect(readEnv(join(cwd, 'two'))).toMatchObject({ RINGWIRE_URL: service.url, RINGWIRE_KEY_ID: '' })
    for (const [{ out }, product] of [
      [found, 'one'],
      [named, 'two'],
    ] as const) {
      expect(out).toContain(`ringwire keys create --product ${product}\n`)
      expect(out).toContain(`ringwire webhooks create http://127.0.0.1:3000/webhooks --product ${product}\n`)
      expect(out).not.toContain(productKey.secret)
    }
  })

  test('where the service sends nothing to this machine, the command that forwards is printed', async () => {
    const strict = await new Service().start()
    try {
      const where = { cwd, env: { RINGWIRE_DATA_DIR: strict.dataDir } }
      const { code, out } = await create(where, 'app', '--yes', '--product', 'shop2')
      const env = readEnv(join(cwd, 'app'))
      expect([code, env.INVITE_SECRET, env.WEBHOOK_SECRET?.slice(0, 6)]).toEqual([0, '', 'whsec_'])
      expect(out).not.toContain(env.WEBHOOK_SECRET ?? '')
      const [, command = ''] = /^ {2}(\(\. .*webhooks listen.*)$/m.exec(out) ?? []
      // As it is printed, in a shell. It says on standard error when it has found the service.
      const listening = Bun.spawn(['sh', '-c', `exec 2>&1; ${command.slice(1, -1)}`], {
        env: { PATH: process.env.PATH ?? '' },
        stdout: 'pipe',
        // A group of its own: the shell's command goes with it.
        detached: true,
      })
      let said = ''
      // It ends when the last one of the group has ended.
      for await (const bytes of listening.stdout) {
        const hadSecret = said.includes('The signing secret is ')
        said += Buffer.from(bytes).toString()
        if (!hadSecret && said.includes('The signing secret is ')) process.kill(-listening.pid, 'SIGTERM')
      }
      await listening.exited
      expect(said).toContain(env.WEBHOOK_SECRET ?? '?')
    } finally {
      await strict.dispose()
    }
  })
})

const rootBin = join(import.meta.dir, '..', '..', '..', 'node_modules', '.bin')
/** Node, and no ringwire. */
const pathWithout = () =>
  (process.env.PATH ?? '')
    .split(':')
    .filter((it) => !existsSync(join(it, 'ringwire')))
    .join(':')
