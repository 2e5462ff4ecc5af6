import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import { acceptedCall, candidate, connectPair } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { adminUrlOf, type Metrics, metricsOf, promtool, startObserved, untilMetrics } from './observed.ts'

describe('on a loopback address', () => {
  let service: Service
  let url = ''
  beforeAll(async () => {
    service = await startObserved({ RINGWIRE_RETENTION_DAYS: 'off' })
    url = await adminUrlOf(service)
  })
  afterAll(() => service && finish(service))

  test('[MET1] a call, from the sockets to its end', async () => {
    const pair = await connectPair(service)
    const callUuid = await acceptedCall(pair)
    for (let n = 0; n < 3; n++) {
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      await pair.callee.next('webrtc.ice_candidate')
    }
    const during = await metricsOf(service)
    const sum = (start: string) =>
      [...during].filter(([name]) => name.startsWith(start)).reduce((total, [, value]) => total + value, 0)
    expect(Object.fromEntries(during)).toMatchObject({
      ringwire_connections: 2,
      'ringwire_sessions{state="connected"}': 2,
      'ringwire_calls{status="accepted"}': 1,
      'ringwire_requests_total{event="call.invite",result="ok"}': 1,
      'ringwire_requests_total{event="/v1/call/session-token",result="200"}': 2,
      'ringwire_call_setup_seconds_count{phase="ring"}': 1,
    })
    // The caller's first message settles its place: this message goes the long way.
    expect(sum('ringwire_relays_total{event="webrtc.ice_candidate"')).toBe(3)
    expect(sum('ringwire_relay_bytes_total')).toBeGreaterThan(300)
    expect(sum('ringwire_store_seconds_count{store="database",operation="commit"}')).toBeGreaterThan(1)
    pair.caller.send('call.end', { call_uuid: callUuid, reason: 'planted_reason' })
    await pair.callee.next('call.ended')
    await Promise.all([pair.caller.close(), pair.callee.close()])
    await untilMetrics(service, 'both are gone', (after) => after.get('ringwire_connections') === 0)
    const after = await metricsOf(service)
    expect(Object.fromEntries(after)).toMatchObject({
      'ringwire_calls{status="accepted"}': 0,
      'ringwire_calls_ended_total{status="ended",end_reason="other"}': 1,
    })
    const closes = [...after.keys()].filter((name) => name.startsWith('ringwire_closes_total'))
    expect(closes.every((name) => name.includes('cause="client"'))).toBe(true)
  })

  test('[MET1] a session that comes back', async () => {
    const before = await metricsOf(service)
    const client = new ExtendedClient({
      userId: 'ann',
      url: service.url,
      token: await service.token({ user_id: 'ann' }),
    })
    await client.connect()
    await client.die()
    await client.connect()
    await client.leave()
    const after = await metricsOf(service)
    const name = 'ringwire_resumes_total{result="recovered"}'
    expect((after.get(name) ?? 0) - (before.get(name) ?? 0)).toBe(1)
  })

  test('[MET1] promtool finds nothing wrong with the text', async () => {
    const response = await fetch(`${url}/metrics`)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await promtool(['check', 'metrics'], await response.text())).toEqual({ code: 0, said: '' })
  })

  test('[ADM1] it tells how the service is, and has nothing else; the public port has no metrics', async () => {
    expect(await (await fetch(`${url}/healthz`)).json()).toMatchObject({ ok: true, service_ready: true })
    expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ ok: true, database: 'ok', redis: 'ok' })
    for (const path of ['/', '/admin/', '/v1/call/session-token', '/v1/ws', '/demo/', '/metrics/', '/constructor']) {
      expect((await fetch(url + path)).status).toBe(404)
    }
    expect((await fetch(`${service.url}/metrics`)).status).toBe(404)
  })

  test('[ADM1] nosniff on each answer, and nothing is kept', async () => {
    const paths = ['/metrics', '/healthz', '/readyz', '/nothing']
    for (const [path, method] of paths.flatMap((path) =>
      ['GET', 'HEAD', 'POST'].map((method) => [path, method] as const),
    )) {
      const { headers } = await fetch(url + path, { method })
      const given = [headers.get('x-content-type-options'), headers.get('cache-control')]
      expect([path, method, ...given]).toEqual([path, method, 'nosniff', 'no-store'])
    }
  })

  test('[MET1] what operators ask for is no traffic of the service, and is counted by itself', async () => {
    const name = 'ringwire_admin_requests_total{result="200"}'
    const before = await metricsOf(service)
    for (const path of ['/metrics', '/healthz', '/readyz', '/nothing']) await fetch(url + path)
    const after = await metricsOf(service)
    const requestsOf = (metrics: Metrics) => [...metrics].filter(([it]) => it.startsWith('ringwire_requests_total'))
    expect(requestsOf(after)).toEqual(requestsOf(before))
    // The three, and the one that told the first number.
    expect((after.get(name) ?? 0) - (before.get(name) ?? 0)).toBe(4)
  })

  test('[MET1] what strangers make up is no label: names of people and events, paths, close codes', async () => {
    const stranger = async (i: number) => {
      const client = await service.connect({ user_id: `planted-${i}`, role: 'customer' })
      client.send(`planted.${i}`, { planted: i })
      await client.next('call.error')
      await fetch(`${service.url}/planted/${i}`)
      await client.close(3000 + i)
    }
    await stranger(0)
    const isGone = (metrics: Metrics) => metrics.get('ringwire_connections') === 0
    // The delay of the event loop is known a moment after the start.
    const isMeasured = (metrics: Metrics) => metrics.has('ringwire_event_loop_delay_seconds_count')
    await untilMetrics(service, 'the first one is gone', (metrics) => isGone(metrics) && isMeasured(metrics))
    const before = await metricsOf(service)
    for (let i = 1; i <= 40; i++) await stranger(i)
    await untilMetrics(service, 'all are gone', isGone)
    const after = await metricsOf(service)
    // What the service does by the clock is measured when it was first done, with a name of its own.
    const isAsked = (series: string) => !series.startsWith('ringwire_store_seconds')
    expect([...after.keys()].filter(isAsked)).toEqual([...before.keys()].filter(isAsked))
    expect([...after.keys()].join()).not.toContain('planted')
  })

  test('[ADM1] methods, bodies and headers that it does not take', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await fetch(`${url}/metrics`, { method })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    }
    expect(await (await fetch(`${url}/metrics`, { method: 'HEAD' })).text()).toBe('')
    expect((await fetch(`${url}/metrics`, { method: 'POST', body: 'x'.repeat(4_096) })).status).toBe(413)
    const large = await fetch(`${url}/metrics`, { headers: { 'X-Large': 'x'.repeat(64 * 1024) } })
    expect(large.status).toBe(431)
    expect((await fetch(`${url}/metrics`)).status).toBe(200)
  })

  test('[ADM1] a web page that leads its own name here gets nothing', async () => {
    const { port } = new URL(url)
    const statusFor = (host: string | undefined) => askRaw(Number(port), host)
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', '10.0.0.1', '']) {
      const answer = await statusFor(host)
      expect(answer).toStartWith('HTTP/1.1 404')
      expect(answer).not.toContain('ringwire_')
    }
    expect(await statusFor(undefined)).not.toContain('ringwire_')
    for (const host of [`127.0.0.1:${port}`, 'localhost', 'localhost:1234', '[::1]:9464']) {
      expect(await statusFor(host)).toStartWith('HTTP/1.1 200')
    }
  })

  test('[ADM1] a port that somebody else has stops the start, with the settings in question', async () => {
    const { port } = new URL(url)
    const second = new Service({ RINGWIRE_ADMIN_PORT: port })
    await expect(second.start()).rejects.toThrow()
    expect(second.log).toContain('RINGWIRE_ADMIN_PORT')
    await second.dispose()
  })
})

const token = 'a-token-that-only-tests-know'
const bearer = (given: string) => ({ headers: { Authorization: `Bearer ${given}` } })

describe('with a token', () => {
  test.each([
    ['127.0.0.1', 200],
    ['0.0.0.0', 401],
  ])('[ADM1] on %s: /metrics without it is %d, all else is refused', async (host, open) => {
    const service = await startObserved({ RINGWIRE_ADMIN_HOST: host, RINGWIRE_ADMIN_TOKEN: token })
    try {
      const url = (await adminUrlOf(service)).replace('0.0.0.0', '127.0.0.1')
      expect((await fetch(`${url}/metrics`)).status).toBe(open)
      for (const path of ['/healthz', '/readyz', '/nothing']) {
        expect((await fetch(url + path)).status).toBe(401)
        expect((await fetch(url + path, bearer(`${token}x`))).status).toBe(401)
      }
      for (const path of ['/metrics', '/healthz', '/readyz']) {
        expect((await fetch(url + path, bearer(token))).status).toBe(200)
      }
      expect((await fetch(`${url}/nothing`, bearer(token))).status).toBe(404)
      // The answer may be here before the line is.
      await until('the log says so', () => service.log.includes('"message":"authentication failed"'))
      expect(service.log).not.toContain(token)
    } finally {
      await finish(service)
    }
  })
})

test('[KEY1] two admin tokens count, each by itself, and nothing else of the setting', async () => {
  const next = 'another-token-of-the-tests'
  const service = await startObserved({ RINGWIRE_ADMIN_TOKEN: `${next},${token}` })
  try {
    const url = await adminUrlOf(service)
    const given = [next, token, `${next},${token}`, `${next}x`, ',']
    const answers = await Promise.all(given.map((each) => fetch(`${url}/healthz`, bearer(each))))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 401, 401])
    for (const each of [next, token]) expect(service.log).not.toContain(each)
  } finally {
    await finish(service)
  }
})

test('[ADM1] wrong tokens are counted and limited, by address; over the limit a right one is not looked at', async () => {
  const service = await startObserved({ RINGWIRE_ADMIN_TOKEN: token })
  try {
    const url = await adminUrlOf(service)
    // Right ones, and none, are not guesses.
    for (let i = 0; i < 30; i++) expect((await fetch(`${url}/healthz`, bearer(token))).status).toBe(200)
    for (let i = 0; i < 30; i++) expect((await fetch(`${url}/healthz`)).status).toBe(401)
    const guess = (given: string) => fetch(`${url}/healthz`, bearer(given))
    for (let i = 0; i < 20; i++) expect((await guess(`wrong-${i}-of-this-length`)).status).toBe(401)
    const over = await guess('wrong-too-of-this-length')
    expect([over.status, await over.json()]).toMatchObject([429, { error: { code: 'RATE_LIMITED' } }])
    expect(Number(over.headers.get('retry-after'))).toBeWithin(1, 61)
    expect((await guess(token)).status).toBe(429)
    // Prometheus on this machine needs none.
    expect(Object.fromEntries(await metricsOf(service))).toMatchObject({
      'ringwire_admin_requests_total{result="200"}': 30,
      'ringwire_admin_requests_total{result="401"}': 50,
      'ringwire_admin_requests_total{result="429"}': 2,
      'ringwire_limited_total{limit="operators"}': 2,
      'ringwire_limited_total{limit="rest"}': 0,
    })
  } finally {
    await finish(service)
  }
})

test('[ADM1] where no port is set nothing listens', async () => {
  const service = await new Service({ RINGWIRE_ADMIN_PORT: '' }).start()
  expect(service.log).not.toContain('for operators')
  await finish(service)
})

/** What comes back for a request with this Host header, or without one. */
async function askRaw(port: number, host: string | undefined): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(`GET /metrics HTTP/1.1\r\n${host === undefined ? '' : `Host: ${host}\r\n`}Connection: close\r\n\r\n`)
  let text = ''
  for await (const bytes of socket) text += String(bytes)
  return text
}
