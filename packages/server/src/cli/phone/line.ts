/** The connection of the phone: one socket, from its token to how it ended. */
import { closeCodes } from '@ringwire/protocol/close-codes'
import { certificateProblem } from '../untrusted.ts'

/** How a connection ended. */
export interface Closed {
  readonly code: number
  readonly reason: string
  /** `quit`, `disconnect`, the end of the input. */
  readonly byUs: boolean
  readonly wasOpen: boolean
  /** What is wrong with the certificate of the service. */
  readonly problem: string | undefined
}

export interface Line {
  readonly state: 'connecting' | 'open' | 'closed'
  readonly closed: Promise<Closed>
  send(text: string): void
  close(): void
}

export function openLine(url: string, token: string, onText: (text: string) => void): Line {
  const { promise: closed, resolve } = Promise.withResolvers<Closed>()
  const socket = new WebSocket(url, ['jwt', token])
  let byUs = false
  let wasOpen = false
  socket.onopen = () => {
    wasOpen = true
  }
  socket.onmessage = ({ data }) => onText(String(data))
  let problem: string | undefined
  socket.onerror = (event) => {
    problem = 'error' in event ? certificateProblem(event.error, new URL(url)) : undefined
  }
  socket.onclose = ({ code, reason }) => resolve({ code, reason, byUs, wasOpen, problem })
  return {
    get state() {
      if (socket.readyState === WebSocket.CONNECTING) return 'connecting'
      return socket.readyState === WebSocket.OPEN ? 'open' : 'closed'
    },
    closed,
    send: (text) => socket.send(text),
    close() {
      byUs = true
      socket.close(1000)
    },
  }
}

/** How a connection ended, as a sentence for the person at the phone. */
export function closingText({ code, reason, byUs, wasOpen, problem }: Closed, url: string): string {
  if (byUs) return 'Disconnected.'
  if (problem !== undefined) return problem
  if (!wasOpen) {
    return `There is no connection: no Ringwire service answers at ${url}. --url (RINGWIRE_URL) says where it is.`
  }
  const known = (closeCodes as Record<number, { name: string; meaning: string } | undefined>)[code]
  if (known === undefined) return `The connection is gone (${code}${reason === '' ? '' : ` ${reason}`}).`
  return `The service closed the connection: ${code} ${known.name}, ${reason}. ${known.meaning}`
}
