// Floods over HTTP.
import type { Socket } from 'bun'
import { participantId } from '../candidate.ts'
import { HttpConnection } from '../http-connection.ts'
import { mintTokens } from '../tokens.ts'
import type { Flood, Worker } from './course.ts'
import type { HttpFloodName } from './job.ts'

const HEALTH_CONNECTIONS = 50
const PIPELINED = 100
const HISTORY_CONNECTIONS = 16
const SLOW_CONNECTIONS = 500
const UPGRADE_CONNECTIONS = 50
const SLOW_EVERY_MS = 250
const PAUSE_MS = 5
const REFUSED_PAUSE_MS = 20

interface Raw {
  isOpen: boolean
  /** Whether what was written has left. */
  isClear: boolean
}

async function openRaw(port: number): Promise<{ socket: Socket<Raw>; raw: Raw }> {
  const raw: Raw = { isOpen: true, isClear: true }
  const socket = await Bun.connect<Raw>({
    hostname: '127.0.0.1',
    port,
    data: raw,
    socket: {
      data() {},
      drain: ({ data }) => {
        data.isClear = true
      },
      close: ({ data }) => {
        data.isOpen = false
      },
      error: ({ data }) => {
        data.isOpen = false
      },
    },
  })
  return { socket, raw }
}

/** Many requests in one write, and again whenever they have left. Without a credential. */
const health: Flood = async ({ port }) => {
  const requests = Buffer.from(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(PIPELINED))
  const worker: Worker = async (course) => {
    while (course.running) {
      const opened = await openRaw(port).catch(() => undefined)
      while (opened?.raw.isOpen === true && course.running) {
        if (opened.raw.isClear) {
          const written = opened.socket.write(requests)
          opened.raw.isClear = written === requests.length
          course.sent += Math.max(0, Math.floor((written / requests.length) * PIPELINED))
        }
        await Bun.sleep(PAUSE_MS)
      }
      if (course.running) course.refused++
      opened?.socket.terminate()
      await Bun.sleep(REFUSED_PAUSE_MS)
    }
  }
  return Array.from({ length: HEALTH_CONNECTIONS }, () => worker)
}

/** Another participant of the calls each time: its limit lasts longer than a flood. */
let readers = 0

/** Pages of the history, one after another on each connection. */
const history: Flood = async ({ port }) => {
  const [token] = await mintTokens(port, [participantId(readers++, 'caller')])
  const request = Buffer.from(
    `GET /v1/calls/history?limit=100 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  const worker: Worker = async (course) => {
    while (course.running) {
      const connection = await HttpConnection.open(port).catch(() => undefined)
      try {
        while (connection !== undefined && course.running) {
          const { status } = await connection.request(request)
          course.sent++
          if (status !== 200) throw new Error(`The history answered ${status}`)
        }
      } catch {
        course.refused++
        await Bun.sleep(REFUSED_PAUSE_MS)
      }
      connection?.close()
    }
  }
  return Array.from({ length: HISTORY_CONNECTIONS }, () => worker)
}

/** Headers that never end, a byte now and then. */
const headers: Flood = async ({ port }) => {
  const worker: Worker = async (course) => {
    while (course.running) {
      const opened = await openRaw(port).catch(() => undefined)
      opened?.socket.write(`GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `)
      while (opened?.raw.isOpen === true && course.running) {
        course.sent += Math.max(0, opened.socket.write('x'))
        await Bun.sleep(SLOW_EVERY_MS)
      }
      if (course.running) course.refused++
      opened?.socket.terminate()
      if (course.running) await Bun.sleep(REFUSED_PAUSE_MS)
    }
  }
  return Array.from({ length: SLOW_CONNECTIONS }, () => worker)
}

/** A new connection for each upgrade, with a token that nobody issued; the next one when it was refused or closed. */
const upgrades: Flood = async ({ port }) => {
  const request = [
    `GET /v1/ws?token=nobody HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    '\r\n',
  ].join('\r\n')
  const worker: Worker = async (course) => {
    while (course.running) {
      const opened = await openRaw(port).catch(() => undefined)
      opened?.socket.write(request)
      if (opened !== undefined) course.sent++
      while (opened?.raw.isOpen === true && course.running) await Bun.sleep(1)
      if (course.running) course.refused++
      opened?.socket.terminate()
    }
  }
  return Array.from({ length: UPGRADE_CONNECTIONS }, () => worker)
}

export const floodsOverHttp: Record<HttpFloodName, Flood> = { health, history, headers, upgrades }
