import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import { settingRows } from '../../src/config/config.ts'
import {
  commandOfExample,
  deploy,
  environmentOf,
  readCompose,
  readEnvironment,
  type Variables,
  variablesOfCompose,
} from './compose.ts'

/* What of deploy/compose.yaml can be shown without Compose. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-compose-'))
const example = readFileSync(join(deploy, 'env.example'), 'utf8')
let made = ''
let file: Variables = {}

beforeAll(() => {
  mkdirSync(join(work, 'deploy'))
  Bun.spawnSync(['cp', join(deploy, 'env.example'), join(work, 'deploy')])
  const { success, stderr } = Bun.spawnSync(['sh', '-ec', commandOfExample()], { cwd: work })
  if (!success) throw new Error(stderr.toString())
  made = join(work, 'deploy', '.env')
  file = readEnvironment(readFileSync(made, 'utf8'))
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

test('env.example: its command makes a file that others cannot read, with a secret for each place', () => {
  expect(statSync(made).mode & 0o077).toBe(0)
  const secrets = readFileSync(made, 'utf8').match(/[0-9a-f]{64}/g) ?? []
  expect(secrets).toHaveLength(example.split('\n').filter((line) => /^\w+=.*CHANGE_ME/.test(line)).length)
  expect(new Set(secrets).size).toBe(secrets.length)
  expect(Object.values(file).filter((value) => value.includes('CHANGE_ME'))).toEqual([])
})

test('every variable is in env.example, and is a setting of the service or asked for by compose.yaml', () => {
  const asked = variablesOfCompose()
  const settings = new Set(settingRows().map(({ name }) => name))
  expect([...asked].filter((name) => !(name in file))).toEqual([])
  expect(Object.keys(file).filter((name) => !settings.has(name) && !asked.has(name))).toEqual([])
  const { node1, node2 } = readCompose(file).services
  for (const node of [node1!, node2!]) {
    expect(Object.keys(node.environment ?? {}).filter((name) => !settings.has(name))).toEqual([])
  }
})

test('HAProxy gets the variables of its configuration, and the addresses that the nodes have', () => {
  const { haproxy, node1, node2 } = readCompose(file).services
  const text = readFileSync(join(deploy, 'haproxy.cfg'), 'utf8')
  for (const name of Object.keys(haproxy!.environment ?? {})) expect(text).toContain(`"\${${name}-`)
  const addressOf = (node: typeof node1) => (node!.networks as { calls: { ipv4_address: string } }).calls.ipv4_address
  expect(haproxy!.environment).toMatchObject({ NODE_1: `${addressOf(node1)}:8080`, NODE_2: `${addressOf(node2)}:8080` })
  // Where the file says that the certificate is.
  expect(haproxy!.volumes).toContain(`${file.TLS_DIRECTORY}:/etc/ssl/ringwire:ro`)
  expect(text).toContain('CERTIFICATE-/etc/ssl/ringwire/calls.pem')
})

test('each service starts again by itself and says how it is; files that are mounted are there; only PostgreSQL keeps something', () => {
  const { services, volumes, configs } = readCompose(file)
  expect(Object.keys(volumes)).toEqual(['postgres'])
  for (const [name, service] of Object.entries(services)) {
    expect([name, service.restart]).toEqual([name, 'unless-stopped'])
    const check: readonly unknown[] = service.healthcheck?.test ?? [undefined]
    expect([name, check.filter((word) => typeof word !== 'string')]).toEqual([name, []])
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':')
      if (source === file.TLS_DIRECTORY) continue
      if (source.startsWith('./')) expect([source, existsSync(join(deploy, source))]).toEqual([source, true])
      else expect([name, source]).toEqual(['postgres', 'postgres'])
    }
    for (const { source } of service.configs ?? []) expect(Object.keys(configs)).toContain(source)
    // Nothing but the proxy can be reached from outside through Docker.
    expect([name, service.ports ?? []]).toEqual([name, name === 'haproxy' ? ['443:443'] : []])
  }
})

test('each service has a bound of memory and of processes, and a log that is rotated; Redis has room, and evicts nothing', () => {
  const { services, configs } = readCompose(file)
  for (const [name, { mem_limit = '', pids_limit = 0, logging }] of Object.entries(services)) {
    expect([name, mem_limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/)])
    expect([name, pids_limit > 0]).toEqual([name, true])
    expect([name, logging]).toEqual([name, { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } }])
  }
  const redis = configs.redis?.content ?? ''
  expect(redis).toContain('maxmemory-policy noeviction\n')
  const [, maxmemory] = /^maxmemory (\d+)mb$/m.exec(redis) ?? []
  expect([Number(maxmemory) * 2, services.redis?.mem_limit]).toEqual([1024, '1g'])
})

test('coturn relays to no address with a special purpose, IPv4 or IPv6, and to others', () => {
  const lines = readCompose(file).configs.coturn?.content.split('\n') ?? []
  const numberOf = (address: string) => {
    const bytes = ipaddr.parse(address).toByteArray()
    return [bytes.length, bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)] as const
  }
  const denied = lines.flatMap((line) => {
    const [, from = '', to = from] = /^denied-peer-ip=([^-]+)(?:-(.+))?$/.exec(line) ?? []
    return from === '' ? [] : [[numberOf(from), numberOf(to)] as const]
  })
  const isDenied = (address: string) => {
    const [length, number] = numberOf(address)
    return denied.some(([from, to]) => from[0] === length && from[1] <= number && number <= to[1])
  }
  const special = [
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255'],
    ...['192.0.0.1', '192.0.2.1', '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1'],
    ...['255.255.255.255', '::', '::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '64:ff9b::7f00:1', '100::1'],
    ...['2001:db8::1', '2002:7f00:1::', 'fc00::1', 'fd12::1', 'fe80::1'],
  ]
  expect(special.filter((address) => !isDenied(address))).toEqual([])
  expect(['1.1.1.1', '172.32.0.1', '192.0.1.1', '2606:4700::1111'].filter(isDenied)).toEqual([])
  expect(lines).toContain('no-multicast-peers')
})

test('a variable that is missing stops, and the placeholders of env.example are refused', async () => {
  expect(() => readCompose({ ...file, REDIS_PASSWORD: '' })).toThrow('REDIS_PASSWORD is not set')
  const warnings = ['REDIS_URL: has no TLS (rediss://): the connection to Redis is not encrypted']
  expect(await check(file)).toEqual({ code: 0, problems: [], warnings })
  const { code, problems } = await check(readEnvironment(example))
  expect(code).toBe(1)
  expect(problems.join()).toContain('RINGWIRE_JWT_SECRETS')
})

/** `ringwire config check` in the environment of each node. */
async function check(variables: Variables): Promise<{ code: number; problems: string[]; warnings: string[] }> {
  const { node1, node2 } = readCompose(variables).services
  const answers = await Promise.all(
    [node1!, node2!].map(async (node) => {
      const main = new URL('../../src/main.ts', import.meta.url).pathname
      const child = Bun.spawn([process.execPath, main, 'config', 'check', '--json'], {
        cwd: work,
        env: environmentOf(node, variables),
        stderr: 'ignore',
      })
      const { problems, warnings } = JSON.parse(await new Response(child.stdout).text())
      return { code: await child.exited, problems, warnings }
    }),
  )
  expect(answers[0]).toEqual(answers[1]!)
  return answers[0]!
}
