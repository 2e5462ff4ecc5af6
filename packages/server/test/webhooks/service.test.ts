import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { callHookTypes } from '@ringwire/protocol/backend'
import { blocks, projectRoot } from '@ringwire/testkit/documents'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { startProcess } from '@ringwire/testkit/process'
import { program } from '@ringwire/testkit/program'
import { openReceiver, type Received, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, type Service } from '@ringwire/testkit/service'
import { Webhook } from 'standardwebhooks'
import { metricsOf, startObserved } from '../admin/observed.ts'

const stepTypes = callHookTypes.filter((type) => !type.startsWith('call.wake'))
let service: Service
let receiver: Receiver
let secret = ''
let id = ''
beforeAll(async () => {
  service = await startObserved({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
  receiver = await openReceiver()
  ;({ id, secret } = await post('', { url: receiver.url, events: stepTypes }, 201))
  await post(`/${id}/test`, {}, 202)
  await receiver.until(1)
})
afterAll(async () => {
  await service?.dispose()
  await receiver?.close()
})

/** As the backend of the product. */
// biome-ignore lint/suspicious/noExplicitAny: each endpoint answers its own.
async function post(below: string, body: object, status: number): Promise<any> {
  const response = await fetch(`${service.url}/v1/server/webhooks${below}`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  if (response.status !== status) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}

/** On the command line, beside the service. */
// biome-ignore lint/suspicious/noExplicitAny: each command prints its own.
async function command(text: string): Promise<any> {
  const child = Bun.spawn([...program, ...text.split(' ')], {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir, RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const out = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`ringwire ${text}`)
  return JSON.parse(out)
}

const of = (callUuid: string) => receiver.received.filter(({ data }) => data.call_uuid === callUuid)
const verified = ({ text, headers }: Received) => new Webhook(secret).verify(text, headers as Record<string, string>)

test('[HOOK2] a call over sockets is told step by step, signed, and counted', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  pair.caller.send('call.connected', { call_uuid: callUuid })
  await until('that is told', () => of(callUuid).length === 3)
  pair.callee.send('call.end', { call_uuid: callUuid })
  await pair.caller.next('call.ended')
  await until('all four came', () => of(callUuid).length === 4)
  expect(of(callUuid).map(({ type }) => type)).toEqual([
    'call.ringing',
    'call.accepted',
    'call.connected',
    'call.ended',
  ])
  expect(of(callUuid).map(verified).at(-1)).toMatchObject({
    type: 'call.ended',
    data: { status: 'ended', end_reason: 'hangup', callee: { user_id: pair.calleeId }, by: { user_id: pair.calleeId } },
  })
  const delivered = 'ringwire_webhook_deliveries_total{result="delivered"}'
  await until('they are counted', async () => ((await metricsOf(service)).get(delivered) ?? 0) >= 5)
  const list = (): Promise<{ status: string; response: string }[]> =>
    command(`webhooks deliveries ${id} --product shop --json`)
  // The result of the last one is stored a moment after it was counted.
  await until('none is pending', async () => (await list()).every(({ status }) => status !== 'pending'))
  const listed = await list()
  expect(new Set(listed.map(({ status, response }) => `${status} ${response}`))).toEqual(
    new Set(['delivered answer 200']),
  )
})

test('[HOOK3] after kill -9 between the commit and the delivery everything comes, in order', async () => {
  const pair = await connectPair(service)
  receiver.reply(() => 'hang')
  const callUuid = await acceptedCall(pair)
  pair.caller.send('call.end', { call_uuid: callUuid })
  await pair.callee.next('call.ended')
  // The first request is under way; what comes after it is committed, and was never sent.
  await until('the first one came', () => of(callUuid).length === 1)
  await service.kill()
  receiver.reply(() => 200)
  await service.start()
  await until('all came', () => of(callUuid).length === 4)
  const [first, again, ...rest] = of(callUuid)
  expect([first?.type, again?.type, again?.id, again?.text]).toEqual([
    'call.ringing',
    'call.ringing',
    first?.id,
    first?.text,
  ])
  expect(rest.map(({ type }) => type)).toEqual(['call.accepted', 'call.ended'])
})

test('[LOG2] what failed for good is a line in the log, without what was sent', async () => {
  receiver.reply(() => 410)
  await command(`webhooks test ${id} --product shop --json`)
  await until('it is said', () => service.log.includes('a webhook could not be delivered'))
  const line = service.log.split('\n').find((text) => text.includes('a webhook could not be delivered')) ?? '{}'
  expect(JSON.parse(line)).toMatchObject({
    product: 'shop',
    endpoint: id,
    event: 'webhook.test',
    attempt: 1,
    cause: 'status 410',
  })
  expect(service.log).not.toContain(secret)
  const find = async () => (await command('webhooks list --product shop --json'))[0]
  // It is said before it is stored.
  await until('it is disabled', async () => (await find()).enabled === false)
  const endpoint = await find()
  expect(endpoint).toMatchObject({ id, enabled: false })
})

test('[HOOK1] on the command line an endpoint is changed, and what failed is sent again under its id', async () => {
  const [gone, moved] = await Promise.all([openReceiver(), openReceiver()])
  gone.reply(() => 410)
  try {
    const { id } = await command(`webhooks create ${gone.url} --product shop --events participant.online --json`)
    const { delivery_id: deliveryId } = await command(`webhooks test ${id} --product shop --json`)
    const deliveries = () => command(`webhooks deliveries ${id} --product shop --json`)
    await until('it has failed', async () => (await deliveries())[0]?.status === 'failed')
    const changed = await command(`webhooks set ${id} --product shop --url ${moved.url} --events call.ended --json`)
    expect(changed).toMatchObject({ id, url: moved.url, events: ['call.ended'], enabled: false })
    await command(`webhooks enable ${id} --product shop --json`)
    const queued = await command(`webhooks retry ${id} ${deliveryId} --product shop --json`)
    expect(queued).toEqual({ delivery_id: deliveryId })
    expect(await moved.until(1)).toMatchObject([{ id: deliveryId, type: 'webhook.test' }])
    expect(gone.received).toHaveLength(1)
    await until('it is delivered', async () => (await deliveries())[0]?.status === 'delivered')
  } finally {
    await Promise.all([gone.close(), moved.close()])
  }
}, 240_000)

test('the receiver of docs/webhooks.md takes what is signed, and nothing else', async () => {
  const code = blocks('docs/webhooks.md', '## Receive them').find(({ language }) => language === 'js')?.text ?? ''
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-receiver-'))
  writeFileSync(join(folder, 'receiver.mjs'), code)
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'))
  const port = await freePort()
  const own = await command(`webhooks create http://127.0.0.1:${port}/ --product shop --json`)
  const again = startProcess(['node', join(folder, 'receiver.mjs')], { PORT: String(port), WEBHOOK_SECRET: own.secret })
  try {
    await again.waitFor(/Listening/)
    expect((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })).status).toBe(401)
    const pair = await connectPair(service)
    // The service reads its endpoints every second.
    const { delivery_id: deliveryId } = await command(`webhooks test ${own.id} --product shop --json`)
    const arrived = async () =>
      (await command(`webhooks deliveries ${own.id} --product shop --json`)).find(
        ({ id, status }: { id: string; status: string }) => id === deliveryId && status === 'delivered',
      )
    await until('the test is delivered', arrived)
    const callUuid = await acceptedCall(pair)
    await again.waitFor(new RegExp(`call.accepted ${callUuid} null`))
    expect(again.out).toContain(`call.ringing ${callUuid} null`)
  } finally {
    again.signal('SIGKILL')
    await again.exited
    rmSync(folder, { recursive: true, force: true })
  }
}, 240_000)
