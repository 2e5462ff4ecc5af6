import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { type Browser, startWebPushServer, type WebPushServer } from '../push/web-push-server.ts'
import { connectExtended } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { expectRefusal, worldFor } from './world.ts'

const ecdh = createECDH('prime256v1')
ecdh.generateKeys()
// One in 256 is a byte shorter than the 32 of the curve.
const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
  .subarray(-32)
  .toString('base64url')

let push: WebPushServer
beforeAll(async () => {
  push = await startWebPushServer(ecdh.getPublicKey().toString('base64url'))
})
afterAll(() => push.stop())

/** The way of one node to PostgreSQL: what answers the commit of this call's step is swallowed. */
let swallowed: string | undefined
let link: TcpProxy | undefined
const world = worldFor({
  envOf: () => ({
    RINGWIRE_VAPID_PRIVATE_KEY: privateKey,
    RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
    RINGWIRE_VAPID_URL: push.url,
  }),
  async databaseUrlOf(url, node) {
    if (node === 'two') return url
    link = await new TcpProxy(url, (bytes, to, between) => {
      const isCommit =
        to === 'server' && swallowed !== undefined && bytes.includes('{"t":0') && bytes.includes(swallowed)
      if (isCommit) between.silence('client')
      return bytes
    }).start()
    const through = new URL(url)
    through.port = String(link.port)
    return through.href
  },
  atEnd: () => link?.stop(),
})

/** A person with a browser that can be woken, and no socket. */
async function registered() {
  const calleeId = someone('callee')
  const browser = push.subscribe()
  const { two } = world()
  const token = await two.token({ user_id: calleeId, role: 'agent', device_id: 'browser' })
  const response = await fetch(`${two.url}/v1/call/device`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ platform: 'webpush', subscription: browser.subscription }),
  })
  expect(response.status).toBe(200)
  return { calleeId, browser }
}

/** What its browser is sent next; without it, what the nodes said of what they did. */
async function pushTo({ inbox }: Browser): Promise<object> {
  const { one, two } = world()
  const { payload } = await inbox.next().catch((error: Error) => {
    const said = [one, two].flatMap(({ log }) => log.trim().split('\n').slice(-15))
    throw new Error([error.message, ...said].join('\n+ '))
  })
  return payload
}

async function statusOf(callUuid: string): Promise<unknown> {
  const { postgres, databaseUrl } = world()
  const [row] = await postgres.query(`SELECT status FROM calls WHERE call_uuid = '${callUuid}'`, databaseUrl)
  return row?.status
}

test('[PUSH2] a ring whose commit was not answered wakes, and so does its end', async () => {
  const { calleeId, browser } = await registered()
  const caller = await connectExtended(world().one, { user_id: someone('caller'), role: 'customer' })
  const callUuid = crypto.randomUUID()
  swallowed = callUuid
  await expectRefusal(caller, 'call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
  expect(await statusOf(callUuid)).toBe('ringing')
  swallowed = undefined
  expect(await pushTo(browser)).toMatchObject({ type: 'call.wake', call_uuid: callUuid })

  swallowed = callUuid
  await expectRefusal(caller, 'call.cancel', { call_uuid: callUuid })
  swallowed = undefined
  await until('it is over', async () => (await statusOf(callUuid)) === 'cancelled')
  expect(await pushTo(browser)).toMatchObject({
    type: 'call.wake_cancelled',
    call_uuid: callUuid,
    status: 'cancelled',
  })
  caller.stop()
}, 240_000)

test('[PUSH2] a node is killed between the commit of a ring and its push: another one wakes', async () => {
  const { calleeId, browser } = await registered()
  const caller = await connectExtended(world().one, { user_id: someone('caller'), role: 'customer' })
  const callUuid = crypto.randomUUID()
  swallowed = callUuid
  caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
  await until('it is committed', async () => (await statusOf(callUuid)) === 'ringing')
  // Its node does not know of the commit, and is gone before it can ask.
  await world().one.kill()
  swallowed = undefined
  expect(await pushTo(browser)).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
  caller.stop()
}, 240_000)
