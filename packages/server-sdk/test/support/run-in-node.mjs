// The bundle on Node. argv: the bundle; stdin: {url, keyId, secret, callUuid}.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

const { createRingwire, RingwireError, webhooks } = await import(process.argv[2])
const { callUuid, ...options } = JSON.parse(readFileSync(0, 'utf8'))
const ringwire = createRingwire(options)
const ended = await ringwire.calls.end(callUuid, { reason: 'closed' })
const wrong = await createRingwire({ ...options, secret: 'wrong' })
  .calls.list()
  .catch((error) => error instanceof RingwireError && error.code)
const { id } = await ringwire.webhooks.create({ url: 'https://backend.example.com/webhooks' })
await ringwire.webhooks.delete(id)
const removed = (await ringwire.webhooks.get(id)) === undefined

const secret = `whsec_${Buffer.from('a secret').toString('base64')}`
const payload = '{"type":"webhook.test","timestamp":"2026-03-02T09:05:00.000Z","data":{}}'
const at = String(Math.floor(Date.now() / 1000))
const signature = createHmac('sha256', 'a secret').update(`m.${at}.${payload}`).digest('base64')
const headers = { 'webhook-id': 'm', 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` }
const { type } = webhooks.verify({ payload, headers, secret })
console.log(JSON.stringify({ version: process.version, reason: ended.end_reason, wrong, removed, type }))
