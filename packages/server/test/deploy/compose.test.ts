import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DCLinter } from 'dclint'
import ipaddr from 'ipaddr.js'
import { settingRows } from '../../src/config/config.ts'
import {
  deploy,
  environmentOf,
  makeSecrets,
  readCompose,
  readEnvironment,
  readSecrets,
  variablesOfCompose,
} from './compose.ts'

/* What of deploy/compose.yaml can be shown without Compose. */

const work = mkdtempSync(join(tmpdir(), 'ringwire-compose-'))
const file = readEnvironment(readFileSync(join(deploy, 'env.example'), 'utf8'))
/** OWNER FILE, as make-secrets.sh has asked for it. */
let owners: string[] = []
let secrets = ''

beforeAll(() => {
  const programs = join(work, 'bin')
  const asked = join(work, 'chown')
  mkdirSync(programs)
  writeFileSync(join(programs, 'chown'), `#!/bin/sh\necho "$@" >> '${asked}'\n`, { mode: 0o755 })
  secrets = makeSecrets(work, `${programs}:${process.env.PATH}`)
  owners = readFileSync(asked, 'utf8').trim().split('\n')
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

test('make-secrets.sh: a file for each secret of compose.yaml, of the user alone who reads it; what is there stays', () => {
  const { services, secrets: named } = readCompose(file)
  expect(Object.entries(named).map(([name, it]) => [name, it.file])).toEqual(
    Object.keys(named).map((name) => [name, `./secrets/${name}`]),
  )
  expect(Object.keys(readSecrets(secrets)).sort()).toEqual(Object.keys(named).sort())
  for (const name of ['', ...Object.keys(named)]) expect(statSync(join(secrets, name)).mode & 0o077).toBe(0)
  // The users of the images: Debian's Redis and PostgreSQL (whose start reads it as root), `nobody` of coturn, and ours.
  const users: Record<string, number> = { node1: 10001, node2: 10001, redis: 999, postgres: 0, coturn: 65534 }
  const readers = Object.entries(services).flatMap(([name, service]) =>
    (service.secrets ?? []).map((secret) => `${users[name]} secrets.new/${secret}`),
  )
  expect([...new Set(readers)].sort()).toEqual([...owners].sort())
  const before = readSecrets(secrets)
  expect(() => makeSecrets(work)).toThrow('is there, and stays as it is')
  expect(readSecrets(secrets)).toEqual(before)
})

test('a secret has 256 bits of its own, and is in no environment, no command and no configuration', () => {
  const random = Object.values(readSecrets(secrets)).flatMap((text) => text.match(/[0-9a-f]{64}/g) ?? [])
  // Three are known on both sides: the passwords of the stores, and that of TURN.
  expect([random.length, new Set(random).size]).toEqual([8, 5])
  const { services } = readCompose(file)
  const settings = settingRows().filter(({ secret }) => secret)
  for (const { environment = {} } of Object.values(services)) {
    expect(Object.keys(environment).filter((name) => settings.some((it) => it.name === name))).toEqual([])
    for (const [name, value] of Object.entries(environment)) {
      if (/SECRET|PASSWORD|AUTH/.test(name)) expect(value).toStartWith('/run/secrets/')
    }
  }
  expect(Object.keys(file).filter((name) => settings.some((it) => it.name === name))).toEqual([])
})

test('it fits the schema of the Compose specification', () => {
  const linter = new DCLinter({ rules: {}, quiet: true, debug: false, exclude: [] })
  const results = (text: string) => {
    writeFileSync(join(work, 'compose.yaml'), text)
    const messages = linter.lintFiles([join(work, 'compose.yaml')], false).flatMap((result) => result.messages)
    // Its remarks about style do not count.
    return messages.filter(({ rule }) => /^(invalid|unknown)-/.test(rule)).map(({ message }) => message)
  }
  const text = readFileSync(join(deploy, 'compose.yaml'), 'utf8')
  expect(results(text)).toEqual([])
  expect(results(text.replace('mem_limit: 1g', 'memory_limit: 1g'))).not.toEqual([])
})

test('every variable is in env.example, and is a setting of the service or asked for by compose.yaml', () => {
  const asked = variablesOfCompose()
  const settings = new Set(settingRows().map(({ name }) => name))
  expect([...asked].filter((name) => !(name in file))).toEqual([])
  expect(Object.keys(file).filter((name) => !settings.has(name) && !asked.has(name))).toEqual([])
  const { node1, node2 } = readCompose(file).services
  for (const node of [node1!, node2!]) {
    const names = Object.keys(node.environment ?? {})
    expect(names.filter((name) => !settings.has(name.replace(/_FILE$/, '')))).toEqual([])
    const mounted = Object.values(node.environment ?? {}).filter((value) => value.startsWith('/run/secrets/'))
    expect(mounted.sort()).toEqual((node.secrets ?? []).map((name) => `/run/secrets/${name}`).sort())
  }
})

test('HAProxy gets the variables of its configuration, and the addresses that the nodes have', () => {
  const { haproxy, node1, node2 } = readCompose(file).services
  const text = readFileSync(join(deploy, 'haproxy.cfg'), 'utf8')
  for (const name of Object.keys(haproxy!.environment ?? {})) expect(text).toContain(`"\${${name}-`)
  const addressOf = (node: typeof node1) => (node!.networks as { calls: { ipv4_address: string } }).calls.ipv4_address
  expect(haproxy!.environment).toMatchObject({ NODE_1: `${addressOf(node1)}:8080`, NODE_2: `${addressOf(node2)}:8080` })
  // The certificate is at the place that the file names.
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

test('each service has bounds of memory, cores and processes, and a log that is rotated; Redis has room, and evicts nothing', () => {
  const { services, configs } = readCompose(file)
  for (const [name, { mem_limit = '', cpus = 0, pids_limit = 0, logging }] of Object.entries(services)) {
    expect([name, mem_limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/)])
    // More cores than the machine has are refused: two are requested.
    expect([name, cpus > 0 && cpus <= 2, pids_limit > 0]).toEqual([name, true, true])
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

test('a variable or a secret that is missing stops', async () => {
  expect(() => readCompose({ ...file, TURN_REALM: '' })).toThrow('TURN_REALM is not set')
  const warnings = ['REDIS_URL_FILE: has no TLS (rediss://): the connection to Redis is not encrypted']
  expect(await check()).toEqual({ code: 0, problems: [], warnings })
  rmSync(join(secrets, 'jwt-secrets'))
  const { code, problems } = await check()
  expect(code).toBe(1)
  expect(problems.join()).toContain('RINGWIRE_JWT_SECRETS_FILE')
})

/** `ringwire config check` in the environment of each node. */
async function check(): Promise<{ code: number; problems: string[]; warnings: string[] }> {
  const { node1, node2 } = readCompose(file).services
  const here = (env: Record<string, string>) =>
    Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replace('/run/secrets', secrets)]))
  const answers = await Promise.all(
    [node1!, node2!].map(async (node) => {
      const main = new URL('../../src/main.ts', import.meta.url).pathname
      const child = Bun.spawn([process.execPath, main, 'config', 'check', '--json'], {
        cwd: work,
        env: here(environmentOf(node, file)),
        stderr: 'ignore',
      })
      const said = JSON.parse(await new Response(child.stdout).text())
      // The stores are names in the network of the containers.
      const problems = said.problems.filter((problem: string) => !/^(PostgreSQL|Redis): /.test(problem))
      const code = await child.exited
      return { code: problems.length === 0 ? 0 : code, problems, warnings: said.warnings }
    }),
  )
  expect(answers[0]).toEqual(answers[1]!)
  return answers[0]!
}
