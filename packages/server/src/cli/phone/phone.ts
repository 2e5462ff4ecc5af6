/**
 * `ringwire phone`: a client in the terminal, of the base protocol (docs/protocol.md). It has no media; what it shows is
 * each envelope as it goes and comes.
 */
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { type Command, InvalidArgumentError } from 'commander'
import { CommandFailure, exitCodes, type LineConsole, type Surroundings, visible } from '../command.ts'
import { requireWsUrl } from '../service-url.ts'
import { requireSigner } from '../signing.ts'
import { addParticipantOptions, issueToken, type ParticipantOptions } from '../token.ts'
import { createPhoneCalls, type PhoneCalls } from './calls.ts'
import { type Envelope, readEnvelope } from './envelope.ts'
import { type Closed, closingText, type Line, openLine } from './line.ts'
import { createNews } from './news.ts'
import { readTyped, type Typed, typedHelp, typedWords } from './typed.ts'

const help = `
Who calls is a token, or a participant for whom one is signed here, as ringwire token does. In two terminals, beside a
running service:

  $ ringwire phone --product shop --user ann --role customer --peer-role agent
  $ ringwire phone --product shop --user ben --role agent --peer-role customer

Then in the first: invite ben. In the second: accept. In either: end. help says what else can be typed.
Each envelope is a line on standard output: > what goes, < what comes. Where lines come from a file or a pipe, wait EVENT
holds the next ones back: printf 'invite ben\\nwait call.accepted\\nend\\n' | ringwire phone …
wait has no limit: it lasts until the event comes or the connection ends. No phone hears call.connected, on either side.
A script leaves when its requests are answered, at most 5 s after its last line, and with 1 where the service refused one.
`

type PhoneOptions = Partial<ParticipantOptions> & { token?: string; url?: string }

export function addPhoneCommand(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  const phone = program
    .command('phone')
    .description('Call and be called from the terminal, and see each message of the protocol.')
    .option(
      '--token <token>',
      'a session token, or - for the first line of standard input (default: one is signed here)',
    )
    .option(
      '--url <url>',
      'ws_url, or the address of the service (default: RINGWIRE_URL, or the URL that ringwire token prints)',
      readUrl,
    )
  addParticipantOptions(phone, false)
  phone.addHelpText('after', help).action(async (options: PhoneOptions) => exit(await run(surroundings, options)))
}

async function run(surroundings: Surroundings, options: PhoneOptions): Promise<number> {
  const source = await tokenSource(surroundings, options)
  const url = options.url ?? requireWsUrl(surroundings)
  const console = surroundings.openConsole(typedWords)
  try {
    return await createPhone({ surroundings, console, url, getToken: await source(console) })()
  } finally {
    console.close()
  }
}

/** Where tokens come from; what is wrong with the options ends the command before anything is asked. */
async function tokenSource(
  surroundings: Surroundings,
  options: PhoneOptions,
): Promise<(console: LineConsole) => Promise<() => string>> {
  const { token, product, user, role, peerRole } = options
  const participant = [product, user, role, peerRole]
  if (token !== undefined) {
    if (participant.some((value) => value !== undefined)) {
      throw new CommandFailure(exitCodes.usage, 'Give --token, or a participant; a token says who it is for.')
    }
    return async (console) => {
      const text = token === '-' ? ((await console.nextLine('Token: ')) ?? '').trim() : token
      if (!/^[\w.-]+$/.test(text)) throw new CommandFailure(exitCodes.usage, 'That is no token.')
      return () => text
    }
  }
  if (product === undefined || user === undefined || role === undefined || peerRole === undefined) {
    const message =
      'Who calls? Give --product, --user, --role and --peer-role, or --token - and a token as the first line of input.'
    throw new CommandFailure(exitCodes.usage, message)
  }
  const signer = await requireSigner(surroundings, product)
  const { contextType = 'test', contextId = 'test' } = options
  const whole = { ...options, product, user, role, peerRole, contextType, contextId }
  return async () => () => issueToken(signer, whole).token
}

/** `http://127.0.0.1:8080` is as good as the whole `ws_url`. */
function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text.replace(/^http/, 'ws')) : undefined
  if (url === undefined || !/^wss?:$/.test(url.protocol) || url.username !== '' || url.search !== '') {
    throw new InvalidArgumentError('It has to be ws://HOST:PORT/v1/ws, or with wss, http or https.')
  }
  if (url.pathname === '/') url.pathname = webSocketPath
  return url.href
}

interface PhoneParts {
  readonly surroundings: Surroundings
  readonly console: LineConsole
  readonly url: string
  /** A token for the next connection. */
  readonly getToken: () => string
}

/** Milliseconds after which a `wait` says what it waits for. */
const longWaitMs = 10_000
/** Milliseconds that a script waits for its last answers at most. */
const lastAnswersMs = 5_000
/** The service has no such event. It says so, after it has answered all requests before it [ORD1]. */
const fence = 'phone.end_of_script'

/** Runs one phone until it is left, and gives the exit code. */
function createPhone({ surroundings, console, url, getToken }: PhoneParts): () => Promise<number> {
  const { terminal } = surroundings
  const calls = createPhoneCalls()
  /** Events that came, and how many of them a `wait` has looked at. */
  const came: string[] = []
  let waited = 0
  const news = createNews()
  let isRefused = false
  let isAllAnswered = false
  let requests = 0
  let peerRoles: readonly string[] = []
  let line: Line | undefined

  const show = (sign: '>' | '<', text: string, isError = false) => {
    const tone = isError ? 'bad' : sign === '>' ? 'strong' : 'good'
    console.print(`${terminal === undefined ? sign : terminal.paint(tone, sign)} ${visible(text)}`)
  }
  const say = (text: string) => console.note(visible(text))

  function onText(text: string): void {
    const envelope = readEnvelope(text)
    if (envelope?.request_id === fence) {
      isAllAnswered = true
      news.wake()
      return
    }
    show('<', text, envelope?.event === 'call.error')
    if (envelope === undefined) return
    if (envelope.event === 'call.error') isRefused = true
    calls.hears(envelope)
    came.push(envelope.event)
    const hint = hintOf(envelope, calls, peerRoles)
    if (hint !== undefined) say(hint)
    news.wake()
  }

  /** How the connection ended, where the service does not let this phone in. */
  async function connect(): Promise<Closed | undefined> {
    const token = getToken()
    peerRoles = peerRolesOf(token)
    say(`Connecting to ${url}`)
    const from = came.length
    const opened = openLine(url, token, onText)
    line = opened
    void opened.closed.then(news.wake)
    await news.until(() => opened.state === 'closed' || came.includes('auth.ok', from))
    if (opened.state !== 'closed') return undefined
    line = undefined
    const closed = await opened.closed
    say(closingText(closed, url))
    return closed
  }

  function send({ event, data }: Envelope): void {
    if (line?.state !== 'open') {
      say('Not connected: connect.')
      return
    }
    const envelope = { event, request_id: String(++requests), data }
    // A token is shown nowhere.
    const shown =
      data !== undefined && 'token' in data ? { ...envelope, data: { ...data, token: '(not shown)' } } : envelope
    show('>', JSON.stringify(shown))
    calls.says(envelope)
    line.send(JSON.stringify(envelope))
  }

  /** False where the connection ended before. */
  async function waitFor(event: string): Promise<boolean> {
    const index = () => came.indexOf(event, waited)
    await news.until(
      () => index() >= 0 || line?.state !== 'open',
      longWaitMs,
      () => say(`Still waiting for ${event}. wait has no limit: it lasts until ${event} comes or the connection ends.`),
    )
    if (index() < 0) return false
    waited = index() + 1
    return true
  }

  /** Waits for the answers that a script has not seen yet, and gives its exit code: `code`, unless all was well so far. */
  async function lastAnswers(code: number): Promise<number> {
    const last = line
    if (last?.state !== 'open') return isRefused ? code || exitCodes.failed : code
    let isLate = false
    last.send(JSON.stringify({ event: fence, request_id: fence }))
    await news.until(
      () => isAllAnswered || isLate || last.state !== 'open',
      lastAnswersMs,
      () => {
        isLate = true
      },
    )
    if (isAllAnswered) return isRefused ? code || exitCodes.failed : code
    if (isLate) {
      say(`The service did not answer everything within ${lastAnswersMs / 1000} s.`)
      // Nor would it answer the close for half a minute.
      last.close()
      line = undefined
    } else say(closingText(await last.closed, url))
    return code || exitCodes.failed
  }

  /** The exit code where it ends the phone. */
  async function act(typed: Typed): Promise<number | undefined> {
    if (typed.kind === 'quit') return exitCodes.done
    if (typed.kind === 'mistake') {
      say(typed.message)
      // A script that goes on after a slip would do something else than it says.
      return console.isInteractive ? undefined : exitCodes.usage
    }
    if (typed.kind === 'send') send(typed.envelope)
    else if (typed.kind === 'help') for (const text of typedHelp()) say(text)
    else if (typed.kind === 'calls')
      for (const call of calls.list()) say(`${call.uuid} ${call.direction} ${call.state} ${call.peer}`)
    else if (typed.kind === 'disconnect') await hangUp()
    else if (typed.kind === 'connect') {
      if (line?.state === 'open') say('Connected already.')
      else await connect()
    } else if (typed.kind === 'wait' && !(await waitFor(typed.event))) {
      say(`The connection ended before ${typed.event} came.`)
      return console.isInteractive ? undefined : exitCodes.failed
    }
    return undefined
  }

  async function hangUp(): Promise<void> {
    line?.close()
    await line?.closed
  }

  return async () => {
    const refused = await connect()
    if (refused !== undefined) return codeOf(refused)
    let read = console.nextLine()
    for (;;) {
      const closed = line?.closed
      const text = await (closed === undefined ? read : Promise.race([read, closed]))
      if (typeof text === 'object' && text !== null) {
        say(closingText(text, url))
        if (!console.isInteractive && !text.byUs) return codeOf(text)
        line = undefined
        continue
      }
      const code = text === null ? exitCodes.done : await act(readTyped(text, { calls, peerRoles }))
      if (code !== undefined) {
        const last = console.isInteractive ? code : await lastAnswers(code)
        // What was sent before the close still takes effect [ORD1].
        await hangUp()
        return last
      }
      read = console.nextLine()
    }
  }
}

function codeOf(closed: Closed): number {
  return closed.code === 4401 ? exitCodes.negative : exitCodes.failed
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
    return `You are ${data.user_id} (${data.role}). To call: ${example}. A call that comes is shown. help says the rest.`
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
