import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import type { createCallClient } from '../src/client.ts'
import type { Call } from '../src/types.ts'
import { next, online, person, ringing, stateOf } from './support/people.ts'

/** What an application ships, and where it runs: one bundle, in places that have not what a browser has. */
const source = (file: string) => new URL(`../src/${file}`, import.meta.url).pathname

async function bundle(entry: string, format: 'esm' | 'cjs' = 'esm'): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [entry], minify: true, target: 'browser', format })
  return outputs[0]!.text()
}

const gzipped = (text: string) => Bun.gzipSync(text, { level: 9 }).byteLength

let service: Service
let directory = ''
beforeAll(async () => {
  service = await new Service().start()
  directory = mkdtempSync(join(tmpdir(), 'ringwire-bundle-'))
})
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  await service.dispose()
})

test('the client is one file under 12 KB, minified and gzipped, without a dependency', async () => {
  const text = await bundle(source('ringwire.ts'))
  const size = gzipped(text)
  console.log(`the client: ${text.length} bytes minified, ${size} gzipped`)
  expect(size).toBeLessThan(12 * 1024)
  expect(text).not.toMatch(/\b(import|require)\b\s*[({"']/)
  expect(text).not.toContain('additionalProperties')
})

test('what is not used is left out', async () => {
  const entry = join(directory, 'one.ts')
  const used = `import { RingwireError } from ${JSON.stringify(source('error.ts'))}\nimport ${JSON.stringify(source('client.ts'))}`
  writeFileSync(entry, `${used}\nconsole.log(new RingwireError('TIMEOUT', ''))\n`)
  expect(gzipped(await bundle(entry))).toBeLessThan(500)
})

test('what a service worker needs for tickets is under 2.5 KB, and nothing of the client', async () => {
  const text = await bundle(source('push.ts'))
  const size = gzipped(text)
  console.log(`tickets and devices: ${text.length} bytes minified, ${size} gzipped`)
  expect(size).toBeLessThan(2_500)
  expect(text).not.toMatch(/WebSocket|auth\.ok/)
})

test('transfers are under 2.5 KB, and bring neither the client nor media', async () => {
  const text = await bundle(source('transfer.ts'))
  const size = gzipped(text)
  console.log(`transfers: ${text.length} bytes minified, ${size} gzipped`)
  expect(size).toBeLessThan(2_500)
  expect(text).not.toMatch(/WebSocket|RTCPeerConnection/)
})

test('what React Native needs beside is under 1.5 KB, and brings neither the client nor media', async () => {
  const text = await bundle(source('react-native.ts'))
  const size = gzipped(text)
  console.log(`React Native: ${text.length} bytes minified, ${size} gzipped`)
  expect(size).toBeLessThan(1_500)
  expect(text).not.toMatch(/WebSocket|ice_servers|\bimport\b/)
})

test('media takes nothing from a page but the devices, where no environment is given', async () => {
  const text = await bundle(source('media/call-media.ts'))
  expect(text.match(/\b(document|window|location|HTML\w*|Audio|Image)\b/g)).toBeNull()
  // `browserEnvironment`.
  expect(text.match(/\bnavigator\b/g)?.length).toBeLessThan(4)
})

test('it runs on Node', async () => {
  const node = Bun.which('node')
  if (node === null) throw new Error('there is no node on PATH')
  const file = join(directory, 'client.mjs')
  writeFileSync(file, await bundle(source('client.ts')))
  const [caller, callee] = await Promise.all([
    service.issue({ user_id: someone('caller'), role: 'customer' }),
    service.issue({ user_id: someone('callee'), role: 'agent' }),
  ])
  // Node has a WebSocket from 22 on; 20 has the same one behind an option.
  const major = Number(Bun.spawnSync([node, '--version']).stdout.toString().slice(1).split('.')[0])
  const options = major >= 22 ? [] : ['--experimental-websocket']
  const script = new URL('support/run-in-node.mjs', import.meta.url).pathname
  const child = Bun.spawn([node, ...options, script, file], {
    env: { PATH: process.env.PATH ?? '' },
    stdin: new Blob([JSON.stringify({ caller, callee })]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(await child.exited, errors).toBe(0)
  const result = JSON.parse(out)
  expect(result).toMatchObject({ sdp: 'v=0', name: 'over', reason: 'hangup' })
  console.log(`ran on Node ${result.version} ${options.join(' ')}`)
})

/** The globals of React Native that the client could meet; the language's own come with the context. */
function nativeGlobals(): Record<string, unknown> {
  return {
    WebSocket,
    fetch,
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    queueMicrotask,
    console,
    performance,
    navigator: { product: 'ReactNative' },
    module: { exports: {} },
  }
}

for (const alias of ['without a window', 'with a window that is only another name of the global object']) {
  test(`it runs with the globals of React Native alone, ${alias}; no device was asked`, async () => {
    const globals = nativeGlobals()
    const context = createContext(globals)
    if (alias.startsWith('with a')) runInContext('globalThis.window = globalThis.self = globalThis', context)
    const absent = [
      'document',
      'location',
      'crypto',
      'URL',
      'TextEncoder',
      'AbortController',
      'addEventListener',
      'Event',
    ]
    const found = runInContext(`${JSON.stringify(absent)}.filter((name) => name in globalThis)`, context)
    expect([...found]).toEqual([])
    const exported = runInContext(
      `(() => {${await bundle(source('client.ts'), 'cjs')}\nreturn module.exports})()`,
      context,
    )

    const caller = someone('caller')
    const peer = person(service, someone('callee'), 'agent')
    await online(peer)
    const client = (exported.createCallClient as typeof createCallClient)({
      getToken: () => service.issue({ user_id: caller, role: 'customer' }),
      heartbeatMs: 100,
    })
    client.connect()
    const out: Call = client.call({ userId: peer.userId, role: 'agent' })
    const incoming = await ringing(peer, out.callUuid)
    await incoming.accept()
    await stateOf(out, 'accepted')
    const offer = next(incoming, 'offer')
    await out.sendOffer({ type: 'offer', sdp: 'v=0' })
    await offer
    client.wake()
    client.close()
    expect(await stateOf(incoming, 'over')).toMatchObject({ reason: 'hangup' })
    peer.client.close()
  })
}
