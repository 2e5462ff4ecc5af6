import { afterAll, beforeAll, expect, test } from 'bun:test'
import SwaggerParser from '@apidevtools/swagger-parser'
import { hookTypes } from '@ringwire/protocol/backend'
import type { Client } from '@ringwire/testkit/client'
import { invite, someone } from '@ringwire/testkit/flows'
import { openReceiver, type Received, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, Service } from '@ringwire/testkit/service'
import { Compile } from 'typebox/schema'
import { setProduct } from '../../packages/server/test/support/products.ts'
import { createOpenApi } from './openapi.ts'
import type { JsonObject } from './schemas.ts'

/** The running service sends what openapi.json says: every webhook here is held against it. */
const service = new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
let receiver: Receiver
beforeAll(async () => {
  receiver = await openReceiver()
  await service.start()
})
afterAll(async () => {
  await service.dispose()
  await receiver?.close()
})

interface Described {
  readonly post: {
    readonly parameters: readonly { name: string; schema: JsonObject }[]
    readonly requestBody: { readonly content: Readonly<Record<string, { schema: JsonObject }>> }
  }
}
const { webhooks } = (await SwaggerParser.dereference(JSON.parse(JSON.stringify(createOpenApi())))) as unknown as {
  webhooks: Readonly<Record<string, Described>>
}

/** The parts that differ from their description, or nothing. */
function problems({ type, text, headers }: Received): unknown[] {
  const described = webhooks[type]?.post
  if (described === undefined) return [`${type} is not there`]
  const mediaType = String(headers['content-type'])
  const schema = described.requestBody.content[mediaType]?.schema
  if (schema === undefined) return [`no body of ${mediaType}`]
  const wrong = described.parameters.filter((it) => !Compile(it.schema).Check(headers[it.name]))
  const body = Compile(schema)
  return [...wrong.map(({ name }) => name), ...(body.Check(JSON.parse(text)) ? [] : body.Errors(JSON.parse(text))[1])]
}

async function ask(below: string, body: object): Promise<{ id: string }> {
  const response = await fetch(`${service.url}/v1/server/webhooks${below}`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  expect(response.ok).toBe(true)
  return response.json()
}

const came = async (isIt: (one: Received) => boolean) => {
  for (let count = 1; !receiver.received.some(isIt); count++) await receiver.until(count)
}

test('[HOOK2] every type of webhook is as it is described', async () => {
  await setProduct(service, 'shop', '--busy', 'reject')
  const { id } = await ask('', { url: receiver.url, events: hookTypes })
  await ask(`/${id}/test`, {})
  await came(({ type }) => type === 'webhook.test')

  const [annId, benId] = [someone('ann'), someone('ben')]
  const extended = { path: '/v1/ws?ext=1' }
  const ann = await service.connect({ user_id: annId, role: 'customer' }, extended)
  const eve = await service.connect({ user_id: someone('eve'), role: 'customer' })
  const ben = await service.connect({ user_id: benId, role: 'agent', device_id: 'desk' }, extended)
  const ring = async (caller: Client, more: object = {}) => {
    const call_uuid = await invite(caller, benId, more)
    await ben.next('call.ringing', ({ data }) => data.call_uuid === call_uuid)
    return { call_uuid }
  }
  const over = (event: string, { call_uuid }: { call_uuid: string }) =>
    ann.next(event, ({ data }) => data.call_uuid === call_uuid)

  const rejected = await ring(ann)
  ben.send('call.reject', rejected)
  await over('call.rejected', rejected)
  const cancelled = await ring(ann, { metadata: { topic: 'delivery' } })
  ann.send('call.cancel', cancelled)
  await ben.next('call.cancelled')
  await over('call.missed', await ring(ann, { ring_timeout_ms: 1 }))

  const call = await ring(ann)
  ben.send('call.accept', call)
  await over('call.accepted', call)
  eve.send('call.invite', { callee_user_id: benId, callee_role: 'agent' }, 'busy')
  expect((await eve.next('call.error')).error?.code).toBe('CALLEE_BUSY')
  ben.send('call.connected', call)
  const stats = { rtt_ms: 40, loss: 0.01, candidate_pair: { local: 'host', remote: 'relay' }, codec: 'audio/opus' }
  ann.send('call.stats', { ...call, stats }, 'stats')
  await ann.next('call.ack', ({ request_id }) => request_id === 'stats')
  ben.send('call.end', call)
  await over('call.ended', call)
  await Promise.all([ann, ben, eve].map((it) => it.close()))
  for (const each of Object.keys(webhooks)) await came(({ type }) => type === each)
  const { received } = receiver
  expect(received.map((one) => ({ type: one.type, problems: problems(one) }))).toEqual(
    received.map(({ type }) => ({ type, problems: [] })),
  )
  const ended = received.find(({ type }) => type === 'call.ended')
  expect(ended?.data).toMatchObject({ quality: { caller: { reports: 1, codec: 'audio/opus' }, callee: null } })
}, 240_000)
