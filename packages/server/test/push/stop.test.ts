import { expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { invite, someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { startWebPushServer } from './web-push-server.ts'

test('[PUSH2] a service that stops waits for a second for the push service that it is asking', async () => {
  const ecdh = createECDH('prime256v1')
  ecdh.generateKeys()
  // 32 bytes, also where the first ones are 0.
  const privateKey = Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()]).subarray(-32)
  const push = await startWebPushServer(ecdh.getPublicKey().toString('base64url'))
  const service = new Service({
    RINGWIRE_VAPID_PRIVATE_KEY: privateKey.toString('base64url'),
    RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
    RINGWIRE_VAPID_URL: push.url,
  })
  try {
    await service.start()
    const calleeId = someone('callee')
    const token = await service.token({ user_id: calleeId, role: 'agent', device_id: 'browser' })
    const { subscription } = push.subscribe()
    const registered = await fetch(`${service.url}/v1/call/device`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify({ platform: 'webpush', subscription }),
      keepalive: false,
    })
    expect(registered.status).toBe(200)
    const asked = Promise.withResolvers<ServerResponse>()
    push.answers((response) => asked.resolve(response))
    await invite(await service.connect({ user_id: someone('caller'), role: 'customer' }), calleeId)
    const response = await asked.promise
    const gone = new Promise((resolve) => response.on('close', resolve))
    const began = performance.now()
    const exited = service.terminate()
    await gone
    expect(performance.now() - began).toBeGreaterThanOrEqual(990)
    expect(await exited).toBe(0)
  } finally {
    await service.dispose()
    await push.stop()
  }
})
