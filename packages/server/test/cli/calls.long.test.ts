import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { productKey, Service } from '@ringwire/testkit/service'
import type { FollowedEntry } from '../../src/history/followed-calls.ts'
import { threeOf } from '../support/transfer-flows.ts'
import { direct } from './command.ts'

/** `ringwire call tail`, `call trace`, `call end` and `call transfer`, beside a running service. */

let service: Service
beforeAll(async () => {
  service = await new Service().start()
})
afterAll(() => service.dispose())

const key = { RINGWIRE_KEY_ID: productKey.id, RINGWIRE_KEY_SECRET: productKey.secret }

function spawn(args: string, env: Record<string, string> = {}, input?: string) {
  return Bun.spawn([...direct, ...args.split(' ')], {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir, RINGWIRE_PORT: '0', ...env },
    stdin: input === undefined ? 'ignore' : Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

async function run(args: string, env: Record<string, string> = {}, input?: string) {
  const child = spawn(args, env, input)
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, out, err }
}

/** What a process prints, as it comes. */
function follow(stream: ReadableStream<Uint8Array>): () => string {
  let text = ''
  void (async () => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) text += decoder.decode(bytes, { stream: true })
  })()
  return () => text
}

test('[TRACE1] tail prints each change of each call once, from now on, also of one that was live before', async () => {
  const pair = await connectPair(service)
  const over = await acceptedCall(pair)
  pair.caller.send('call.end', { call_uuid: over })
  await pair.callee.next('call.ended')
  const live = await acceptedCall(pair)
  const tail = spawn('call tail --product shop --json')
  const plain = spawn('call tail --product shop')
  const [out, text] = [follow(tail.stdout), follow(plain.stdout)]
  const errors = [follow(tail.stderr), follow(plain.stderr)]
  await until('it follows', () => errors.every((err) => err().includes('from now on')))
  pair.caller.send('call.end', { call_uuid: live })
  await pair.callee.next('call.ended', ({ data }) => data.call_uuid === live)
  const fresh = await acceptedCall(pair)
  pair.callee.send('call.end', { call_uuid: fresh })
  await pair.caller.next('call.ended', ({ data }) => data.call_uuid === fresh)
  const last = await invite(pair.caller, pair.calleeId)
  await until('all is printed', () => [out(), text()].every((printed) => printed.includes(last)))
  const entries = out()
    .trim()
    .split('\n')
    .map((line): FollowedEntry => JSON.parse(line))
  expect(entries.map(({ call_uuid, what }) => [call_uuid, what])).toEqual([
    [live, 'ended'],
    [fresh, 'invited'],
    [fresh, 'accepted'],
    [fresh, 'ended'],
    [last, 'invited'],
  ])
  expect(entries[3]).toMatchObject({ who: { user_id: pair.calleeId }, detail: { end_reason: 'hangup' } })
  expect(text().split('\n')[3]).toBe(`${entries[3]?.at}  ${fresh}  ended (hangup) by agent/${pair.calleeId}`)
  for (const child of [tail, plain]) {
    child.kill('SIGINT')
    await child.exited
  }
}, 240_000)

test('[TRACE1] trace says that the callee was not connected, also where nobody is woken', async () => {
  const caller = await service.connect({ user_id: someone('ann') })
  const calleeId = someone('ben')
  const callUuid = await invite(caller, calleeId)
  const why = `The call rings; agent ${calleeId} was not connected and has no registered device.`
  await until('it is written', async () => (await run(`call trace ${callUuid} --product shop`)).out.includes(why))
  await caller.close()
}, 240_000)

test('[SRV2] end asks the service with a product key: both sides hear it', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const ask = `call end ${callUuid} --product shop --url ${service.url}`
  const ended = await run(`${ask} --reason closed`, key)
  expect([ended.code, ended.out]).toEqual([0, `The call ${callUuid} is over: ended, ended_by_server.\n`])
  for (const client of [pair.caller, pair.callee])
    expect((await client.next('call.ended')).data.reason).toBe('ended_by_server')
  const again = await run(`${ask} --key ${productKey.id} --json`, {}, `${productKey.secret}\n`)
  expect([again.code, JSON.parse(again.out).call.end_reason]).toEqual([0, 'ended_by_server'])
  const short = callUuid.slice(0, 8)
  expect(await run(`call end ${short} --product shop --url ${service.url}`, key)).toMatchObject({
    code: 3,
    err: expect.stringContaining(`No live call of shop begins with ${short}.`),
  })
  const { out } = await run(`call trace ${callUuid} --product shop`)
  expect(out).toContain('note=closed')
}, 240_000)

test('[SRV2] [XFER1] transfer asks the service: it rings at somebody or at a group, under a short id, too', async () => {
  const { eva, ids, first } = await threeOf(service)
  const ask = `call transfer ${first.slice(0, 8)} --product shop --by callee --role agent --url ${service.url}`
  const rings = await run(`${ask} --user ${ids.eva}`, key)
  const { data } = await eva.next('call.ringing')
  expect(rings).toEqual({ code: 0, err: '', out: `It rings at agent/${ids.eva}: ${data.call_uuid}.\n` })
  await eva.request('call.reject', { call_uuid: data.call_uuid })
  const unknown = await run(`${ask} --group nobody`, key)
  expect([unknown.code, unknown.out, unknown.err]).toEqual([1, '', expect.stringMatching(/^GROUP_NOT_FOUND: /)])
  const again = await run(`${ask} --user ${ids.eva} --json`, key)
  expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { success: true, call_uuid: first }])
  for (const [more, code, words] of [
    ['', 2, 'Give --user or --group, and not both'],
    [' --user eva --group sales', 2, 'Give --user or --group, and not both'],
    [' --user max', 1, 'CALL_INVALID_STATE: The call is being transferred already'],
  ] as const) {
    const refused = await run(ask + more, key)
    expect([more, refused.code, refused.out]).toEqual([more, code, ''])
    expect(refused.err).toContain(words)
  }
  const gone = `call transfer ${crypto.randomUUID()} --product shop --by callee --role agent --user eva`
  expect(await run(`${gone} --url ${service.url}`, key)).toMatchObject({ code: 3, out: '' })
  const wrong = await run(gone.replace('callee', 'ben'), key)
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('caller, callee')])
}, 240_000)

test('[SRV2] end says why it could not, and never the secret', async () => {
  const callUuid = crypto.randomUUID()
  const ask = `call end ${callUuid} --product shop`
  const refused = async (args: string, env: Record<string, string> = key) => {
    const { code, out, err } = await run(args, env)
    expect([out, err.includes(productKey.secret)]).toEqual(['', false])
    return [code, err]
  }
  const url = ` --url ${service.url}`
  expect(await refused(ask + url)).toEqual([
    3,
    `The product shop has no call ${callUuid}. ringwire call list --product shop shows its calls.\n`,
  ])
  const [code, err] = await refused(ask + url, { ...key, RINGWIRE_KEY_SECRET: 'wrong' })
  expect([code, err]).toEqual([1, expect.stringMatching(/^PRODUCT_AUTH_INVALID_SECRET: /)])
  expect(await refused(`${ask} --url http://127.0.0.1:1`)).toEqual([
    1,
    expect.stringMatching(/^No service answers at http:\/\/127\.0\.0\.1:1\. .*RINGWIRE_URL/),
  ])
  expect(await refused(ask + url, {})).toEqual([
    2,
    'Give --key, or set RINGWIRE_KEY_ID: ringwire keys list shows the keys.\n',
  ])
  // The service of this data directory is found without its address.
  expect((await refused(ask))[0]).toBe(3)
}, 240_000)

test('[SRV2] a server that is no Ringwire is told from a call that is not there', async () => {
  let status = 0
  const headers = { Location: '/elsewhere' }
  const other = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response('<h1>Somewhere else</h1>', { status, headers }),
  })
  try {
    for (status of [200, 302, 404, 502]) {
      const { code, err } = await run(`call end ${crypto.randomUUID()} --product shop --url ${other.url.origin}`, key)
      const look = 'Check that --url (RINGWIRE_URL) names the service.'
      expect([code, err]).toEqual([1, `${other.url.origin} answered ${status}, but not as Ringwire does. ${look}\n`])
    }
  } finally {
    await other.stop(true)
  }
}, 240_000)

test('[SRV2] end asks a service that a proxy serves below a path, with a slash at its end or without', async () => {
  const proxy = Bun.serve({
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (!pathname.startsWith('/calls/v1/')) return new Response('nothing here', { status: 502 })
      return fetch(service.url + pathname.slice('/calls'.length) + search, request)
    },
  })
  try {
    const pair = await connectPair(service)
    for (const path of ['/calls', '/calls/']) {
      const callUuid = await acceptedCall(pair)
      const ended = await run(`call end ${callUuid} --product shop --url http://127.0.0.1:${proxy.port}${path}`, key)
      expect([ended.code, ended.out]).toEqual([0, `The call ${callUuid} is over: ended, ended_by_server.\n`])
      for (const client of [pair.caller, pair.callee]) await client.next('call.ended')
    }
  } finally {
    await proxy.stop(true)
  }
})
