/** What goes between a phone and the service, over one connection after another; each envelope is shown. */
import { type LineConsole, type Surroundings, visible } from '../command.ts'
import { createPhoneCalls, type PhoneCalls } from './calls.ts'
import { type Envelope, readEnvelope } from './envelope.ts'
import { type Closed, closingText, type Line, openLine } from './line.ts'
import { createNews } from './news.ts'

export interface PhoneParts {
  readonly surroundings: Surroundings
  readonly console: LineConsole
  readonly url: string
  /** A token for the next connection. */
  readonly getToken: () => string
}

/** The service has no such event. It says so, after it has answered all requests before it [ORD1]. */
const fence = 'phone.end_of_script'
/** Asks for an answer that comes after all others. */
export const fenceText = JSON.stringify({ event: fence, request_id: fence })

/** What came, on all connections. */
interface Seen {
  readonly events: string[]
  /** The service refused a request. */
  isRefused: boolean
  isAllAnswered: boolean
}

export type Conversation = ReturnType<typeof createConversation>

export function createConversation({ surroundings, console, url, getToken }: PhoneParts) {
  const { show, say } = createScreen(surroundings, console)
  const calls = createPhoneCalls()
  const news = createNews()
  const seen: Seen = { events: [], isRefused: false, isAllAnswered: false }
  let requests = 0
  let peerRoles: readonly string[] = []
  let line: Line | undefined

  function onText(text: string): void {
    const envelope = readEnvelope(text)
    if (envelope?.request_id === fence) {
      seen.isAllAnswered = true
      return void news.wake()
    }
    show('<', text, envelope?.event === 'call.error')
    if (envelope === undefined) return
    if (envelope.event === 'call.error') seen.isRefused = true
    calls.hears(envelope)
    seen.events.push(envelope.event)
    const hint = hintOf(envelope, calls, peerRoles)
    if (hint !== undefined) say(hint)
    news.wake()
  }

  /** How the connection ended, where the service does not let this phone in. */
  async function connect(): Promise<Closed | undefined> {
    const token = getToken()
    peerRoles = peerRolesOf(token)
    say(`Connecting to ${url}`)
    const from = seen.events.length
    const opened = openLine(url, token, onText)
    line = opened
    void opened.closed.then(news.wake)
    await news.until(() => opened.state === 'closed' || seen.events.includes('auth.ok', from))
    if (opened.state !== 'closed') return undefined
    line = undefined
    const closed = await opened.closed
    say(closingText(closed, url))
    return closed
  }

  function send({ event, data }: Envelope): void {
    if (line?.state !== 'open') return void say('Not connected: connect.')
    const envelope = { event, request_id: String(++requests), data }
    show('>', JSON.stringify(withoutToken(envelope)))
    calls.says(envelope)
    line.send(JSON.stringify(envelope))
  }

  return {
    say,
    connect,
    send,
    calls,
    seen: seen as Readonly<Seen>,
    /** Something came, or the connection ended. */
    news,
    peerRoles: () => peerRoles,
    line: () => line,
    leave(): void {
      line = undefined
    },
    async hangUp(): Promise<void> {
      line?.close()
      await line?.closed
    },
  }
}

function createScreen({ terminal }: Surroundings, console: LineConsole) {
  const show = (sign: '>' | '<', text: string, isError = false) => {
    const tone = isError ? 'bad' : sign === '>' ? 'strong' : 'good'
    console.print(`${terminal === undefined ? sign : terminal.paint(tone, sign)} ${visible(text)}`)
  }
  const say = (text: string) => console.note(visible(text))
  return { show, say }
}

/** A token is shown nowhere. */
function withoutToken({ data, ...envelope }: Envelope & { request_id: string }) {
  return { ...envelope, data: data !== undefined && 'token' in data ? { ...data, token: '(not shown)' } : data }
}

/** What the token says of itself; whether that is true, the service decides. */
function peerRolesOf(token: string): readonly string[] {
  const payload = readEnvelope(`{"event":"","data":${Buffer.from(token.split('.')[1] ?? '', 'base64url')}}`)
  const roles = payload?.data?.allowed_peer_roles
  return Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : []
}

/** What can be typed now. */
function hintOf({ event, data = {} }: Envelope, calls: PhoneCalls, peerRoles: readonly string[]): string | undefined {
  const call = calls.list().find(({ uuid }) => uuid === data.call_uuid)
  if (event === 'auth.ok') {
    const [role = 'ROLE', ...others] = peerRoles
    const example = others.length === 0 ? 'invite USER' : `invite USER ${role}`
    return `You are ${data.user_id} (${data.role}). To call: ${example}. Incoming calls are shown. help says the rest.`
  }
  if (event === 'call.ringing') return `${call?.peer} is calling: accept, or reject.`
  if (event === 'call.invited') {
    return data.delivered === true
      ? `It rings at ${call?.peer}: wait, or cancel.`
      : `${call?.peer} has no connection; it rings until ${data.expires_at}. cancel takes it back.`
  }
  if (event === 'call.accepted') return 'It was answered. connected says that media flows, end hangs up.'
  if (event === 'call.error') return undefined
  return call?.state === 'over' ? `The call with ${call.peer} is over here: ${data.reason}.` : undefined
}
