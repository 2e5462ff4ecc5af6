/** `ringwire webhooks listen` beside a service as it is configured by default: it reaches no private address [HOOK4]. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { webhooks } from '@ringwire/server-sdk'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { startTyping, type Typist } from '../cli/typist.ts'
import { becomesReady, worldFor } from '../failures/world.ts'

const stores = worldFor({})
let embedded: Service
beforeAll(async () => {
  embedded = await new Service().start()
}, 120_000)
afterAll(() => embedded?.dispose())

const compositions = [
  ['embedded', () => [embedded]],
  ['two nodes on PostgreSQL and Redis', () => [stores().one, stores().two]],
] as const

/** A server of somebody's own, which verifies what it is sent. */
function openBackend() {
  const types: string[] = []
  let secret = ''
  let status = 204
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname !== '/hooks') return new Response(null, { status: 404 })
      types.push(webhooks.verify({ payload: await request.text(), headers: request.headers, secret }).type)
      return new Response(null, { status })
    },
  })
  return {
    types,
    url: `http://127.0.0.1:${server.port}/hooks`,
    trust: (own: string) => {
      secret = own
    },
    answerWith: (code: number) => {
      status = code
    },
    close: () => server.stop(true),
  }
}

for (const [name, nodesOf] of compositions) {
  describe(name, () => {
    const ringwire = (args: string) => {
      const [node] = nodesOf()
      const env = { ...node?.env, RINGWIRE_DATA_DIR: node?.dataDir ?? '', RINGWIRE_PORT: '0' }
      return startTyping(args.split(' '), env)
    }
    const endpoints = async () => JSON.parse((await ringwire('webhooks list --product shop --json').ended).out)

    async function listen(more: string): Promise<{ command: Typist; secret: string }> {
      const command = ringwire(`webhooks listen --product shop ${more}`)
      const [, secret = ''] = await command.sees(/(whsec_[\w+/=]+)/)
      await until('the service knows it', async () => (await endpoints()).length === 1)
      return { command, secret }
    }

    /** A call that the service tells of; before it has looked, it tells nobody. */
    async function callUntil(seen: () => boolean): Promise<void> {
      const nodes = nodesOf()
      for (let n = 0; !seen(); n++) {
        const pair = await connectPair(nodes[n % nodes.length] as Service)
        const callUuid = await acceptedCall(pair)
        pair.caller.send('call.end', { call_uuid: callUuid })
        await pair.callee.next('call.ended')
        await Promise.all([pair.caller.close(), pair.callee.close()])
        await Bun.sleep(500)
      }
    }

    test('[HOOK1] events reach a local server, signed, and each is printed with its answer', async () => {
      await becomesReady(...nodesOf())
      const backend = openBackend()
      const { command, secret } = await listen(`--forward-to ${backend.url}`)
      backend.trust(secret)
      // The service may hear of the endpoint in the middle of a call: then it only tells how that call ends.
      await callUntil(() => ['call.accepted', 'call.ended'].every((type) => backend.types.includes(type)))
      await command.sees(/call\.accepted {2}[0-9a-f-]{36} {2}→ 204 \(\d+ ms\)/)
      backend.answerWith(500)
      const before = backend.types.length
      await callUntil(() => backend.types.length > before)
      await command.sees(/→ 500 \(\d+ ms\)/)
      await backend.close()
      // Nobody listens there any more: it goes on, and says so.
      let refused = false
      void command.sees(/→ ECONNREFUSED|→ ConnectionRefused/).then(() => {
        refused = true
      })
      await callUntil(() => refused)
      const [endpoint] = await endpoints()
      command.interrupt()
      const { code, err } = await command.ended
      expect(code).toBe(0)
      // The service has each of them as delivered, so only this tells the ids.
      expect(err).toMatch(
        new RegExp(`^To send it again: ringwire webhooks retry ${endpoint.id} msg_\\w+ --product shop$`, 'm'),
      )
      expect(await endpoints()).toEqual([])
    }, 240_000)

    test('[HOOK1] without --forward-to it prints; kill -9 leaves no endpoint behind', async () => {
      const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
      const { command, secret: shown } = await listen(`--json --events call.ringing --secret ${secret}`)
      expect(shown).toBe(secret)
      let line = ''
      void command.sees(/^\{"at":.*\}$/m).then(([found]) => {
        line = found
      })
      await callUntil(() => line !== '')
      expect(JSON.parse(line)).toMatchObject({ type: 'call.ringing', call_uuid: expect.any(String) })
      command.kill()
      await command.ended
      await until('the service has removed it', async () => (await endpoints()).length === 0)
    }, 240_000)
  })
}

test('[HOOK1] what it waits for is said at once, also where no service runs', async () => {
  const stopped = await new Service().start()
  await stopped.terminate()
  const env = { RINGWIRE_DATA_DIR: stopped.dataDir, RINGWIRE_BOOTSTRAP_KEYS: '', RINGWIRE_PORT: '0' }
  const command = startTyping('webhooks listen --product shop'.split(' '), env)
  await command.sees(/whsec_/)
  command.interrupt()
  const waiting = `Waiting for the service that runs with ${stopped.dataDir} on this machine`
  expect(await command.ended).toMatchObject({ code: 0, err: expect.stringContaining(waiting) })
  await stopped.dispose()
}, 120_000)

test('what cannot be listened to is said at once', async () => {
  const run = (args: string) =>
    startTyping(args.split(' '), { RINGWIRE_DATA_DIR: embedded.dataDir, RINGWIRE_PORT: '0' }).ended
  for (const [args, code, words] of [
    ['webhooks listen --product nope', 3, 'Products with a key: shop'],
    ['webhooks listen --product shop --events call.dance', 2, 'call.ringing'],
    ['webhooks listen --product shop --forward-to http://:x', 2, 'http://127.0.0.1:3000/webhooks'],
    ['webhooks listen --product shop --secret abc', 2, 'whsec_'],
  ] as const) {
    expect(await run(args)).toMatchObject({ code, out: '', err: expect.stringContaining(words) })
  }
})
