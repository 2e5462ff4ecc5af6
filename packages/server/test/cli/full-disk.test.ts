import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Box, createBox, direct } from './command.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

test('a log that cannot be written stops nothing: the service starts, serves, and ends in order', async () => {
  const program = ['sh', '-c', 'exec "$@" 2>/dev/full', 'sh', ...direct]
  const service = await box.serve({ program, env: { RINGWIRE_LOG_LEVEL: 'debug' } })
  // The first with this header is warned of.
  const response = await fetch(`${service.url}/healthz`, { headers: { 'X-Forwarded-For': '203.0.113.1' } })
  expect(response.status).toBe(200)
  service.signal('SIGTERM')
  expect((await service.ended).code).toBe(0)
})

test('[HTTP1] a request that this runtime would answer by itself shows nothing of it', async () => {
  const service = await box.serve()
  const response = await fetch(`${service.url}/bun:info`)
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
})
