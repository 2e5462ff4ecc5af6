import { describe, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { exchange, RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Service } from '@ringwire/testkit/service'
import { type StartService, withService } from './start.ts'

/** How often an address may ask to be upgraded without a token that is good [HTTP1]. */
export function registerStrangerLimitScenarios(name: string, start: StartService): void {
  describe(`${name}: limits`, () => {
    test.concurrent('[HTTP1] strangers of one address are upgraded to hear why not until its limit, then get 429; good tokens never do', () =>
      withService(start, { RINGWIRE_REST_RATE_IP: '5/600' }, strangersOfOneAddress))

    test.concurrent('[HTTP1] fifty strangers of one address hear at once why not, the next one a second later', () =>
      withService(start, { RINGWIRE_REST_RATE_IP: '1000/600' }, manyStrangers))
  })
}

async function strangersOfOneAddress(service: Service): Promise<void> {
  // Each process counts for itself.
  const { url } = service
  const token = await service.token({ user_id: someone('agent'), role: 'agent' })
  const knock = async (lines: readonly string[], target?: string) => {
    const socket = new RawSocket(url)
    const answer = await exchange(socket, upgradeHead(lines, target))
    return { socket, answer }
  }
  const good = [[`Sec-WebSocket-Protocol: jwt, ${token}`], [`Authorization: Bearer ${token}`]]
  const bad = [
    { lines: ['Sec-WebSocket-Protocol: jwt, rubbish'], status: 101 },
    { lines: ['Sec-WebSocket-Protocol: jwt'], status: 101 },
    { lines: ['Authorization: Bearer rubbish'], status: 401 },
    { lines: [], status: 401 },
    { lines: good[0]!, target: `/v1/ws?token=${token}`, status: 401 },
  ]
  const allGetIn = async () => {
    for (const lines of [...good, ...good, ...good]) {
      const { socket, answer } = await knock(lines)
      expect(answer.status).toBe(101)
      await socket.until((it) => it.texts.some((text) => text.includes('"auth.ok"')), 'auth.ok')
      socket.destroy()
    }
  }
  await allGetIn()
  for (const { lines, target, status } of bad) {
    const { socket, answer } = await knock(lines, target)
    expect(answer.status).toBe(status)
    if (status === 101) await socket.until((it) => it.closeCode === 4401, 'close 4401')
    socket.destroy()
  }
  for (const { lines, target } of bad) {
    const asked = performance.now()
    const { socket, answer } = await knock(lines, target)
    expect(answer.status).toBe(429)
    // A client that waits asks less often.
    expect(performance.now() - asked).toBeGreaterThan(990)
    expect(answer.head).toMatch(/\r\nconnection: close/i)
    expect(Number(/\r\nretry-after: *(\d+)/i.exec(answer.head)?.[1])).toBeWithin(1, 601)
    expect(JSON.parse(answer.body)).toEqual({
      success: false,
      error: { code: 'RATE_LIMITED', message: expect.any(String) },
    })
    await socket.closed
    socket.destroy()
  }
  await allGetIn()
}

async function manyStrangers({ url }: Service): Promise<void> {
  const knock = async () => {
    const asked = performance.now()
    const socket = new RawSocket(url)
    const { status } = await exchange(socket, upgradeHead([]))
    socket.destroy()
    return { status, ms: performance.now() - asked }
  }
  const prompt: Awaited<ReturnType<typeof knock>>[] = []
  for (let i = 0; i < 50; i++) prompt.push(await knock())
  expect(prompt.every(({ status }) => status === 401)).toBe(true)
  // All of them together: one that waited would show.
  expect(prompt.filter(({ ms }) => ms < 990).length).toBeGreaterThan(45)
  const late = await knock()
  expect(late.status).toBe(401)
  expect(late.ms).toBeGreaterThan(990)
}
