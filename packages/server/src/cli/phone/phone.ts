/**
 * `ringwire phone`: a client in the terminal, of the base protocol (docs/protocol.md). It has no media; what it shows is
 * each envelope as it goes and comes.
 */
import { webSocketPath } from '@ringwire/protocol/subprotocol'
import { type Command, InvalidArgumentError } from 'commander'
import { CommandFailure, exitCodes, type LineConsole, type Surroundings } from '../command.ts'
import { requireWsUrl } from '../service-url.ts'
import { requireSigner } from '../signing.ts'
import { addParticipantOptions, issueToken, type ParticipantOptions } from '../token.ts'
import { type Conversation, createConversation, fenceText, type PhoneParts } from './conversation.ts'
import { type Closed, closingText } from './line.ts'
import { readTyped, type Typed, typedHelp, typedWords } from './typed.ts'

const help = `
Give a token, or a participant for whom this command signs one, as ringwire token does. In two terminals, next to a
running service:

  $ ringwire phone --product shop --user ann --role customer --peer-role agent
  $ ringwire phone --product shop --user ben --role agent --peer-role customer

Then in the first: invite ben. In the second: accept. In either: end. help lists the rest.
invite --group support calls a group (ringwire groups) in place of a person.
Each envelope is a line on standard output: > sent, < received. If lines come from a file or a pipe, wait EVENT
holds the next ones back: printf 'invite ben\\nwait call.accepted\\nend\\n' | ringwire phone …
wait has no limit: it lasts until the event comes or the connection ends. No phone hears call.connected, on either side.
A script leaves when its requests are answered, at most 5 s after its last line, and with 1 if the service refused one.
`

type PhoneOptions = Partial<ParticipantOptions> & { token?: string; url?: string }

export function addPhoneCommand(program: Command, surroundings: Surroundings, exit: (code: number) => void): void {
  const phone = program
    .command('phone')
    .description('Call and be called from the terminal, and see each message of the protocol.')
    .option(
      '--token <token>',
      'a session token, or - for the first line of standard input (default: this command signs one)',
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

/** The source of tokens; wrong options end the command before any request. */
async function tokenSource(
  surroundings: Surroundings,
  options: PhoneOptions,
): Promise<(console: LineConsole) => Promise<() => string>> {
  const { token, product, user, role, peerRole } = options
  const participant = [product, user, role, peerRole]
  if (token !== undefined) {
    if (participant.some((value) => value !== undefined)) {
      throw new CommandFailure(
        exitCodes.usage,
        'Give --token or a participant, not both: a token names its participant.',
      )
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

/** Milliseconds after which a `wait` says what it waits for. */
const longWaitMs = 10_000
/** Milliseconds that a script waits for its last answers at most. */
const lastAnswersMs = 5_000

/** What a script waits for. */
function createWaits(talk: Conversation, url: string) {
  /** How many of the events that came a `wait` has looked at. */
  let waited = 0

  /** False where the connection ended before. */
  async function waitFor(event: string): Promise<boolean> {
    const index = () => talk.seen.events.indexOf(event, waited)
    await talk.news.until(
      () => index() >= 0 || talk.line()?.state !== 'open',
      longWaitMs,
      () =>
        talk.say(
          `Still waiting for ${event}. wait has no limit: it lasts until ${event} comes or the connection ends.`,
        ),
    )
    if (index() < 0) return false
    waited = index() + 1
    return true
  }

  /** Waits for the answers that a script has not seen yet, and gives its exit code: `code`, unless all was well so far. */
  async function lastAnswers(code: number): Promise<number> {
    const last = talk.line()
    if (last?.state !== 'open') return talk.seen.isRefused ? code || exitCodes.failed : code
    let isLate = false
    last.send(fenceText)
    await talk.news.until(
      () => talk.seen.isAllAnswered || isLate || last.state !== 'open',
      lastAnswersMs,
      () => {
        isLate = true
      },
    )
    if (talk.seen.isAllAnswered) return talk.seen.isRefused ? code || exitCodes.failed : code
    if (isLate) {
      talk.say(`The service did not answer everything within ${lastAnswersMs / 1000} s.`)
      // Nor would it answer the close for half a minute.
      last.close()
      talk.leave()
    } else talk.say(closingText(await last.closed, url))
    return code || exitCodes.failed
  }

  return { waitFor, lastAnswers }
}

/** Runs one phone until it is left, and gives the exit code. */
function createPhone(parts: PhoneParts): () => Promise<number> {
  const { console, url } = parts
  const talk = createConversation(parts)
  const { calls, say } = talk
  const { waitFor, lastAnswers } = createWaits(talk, url)

  /** The exit code where it ends the phone. */
  async function act(typed: Typed): Promise<number | undefined> {
    if (typed.kind === 'quit') return exitCodes.done
    if (typed.kind === 'mistake') {
      say(typed.message)
      // A script that goes on after a slip would do something else than it says.
      return console.isInteractive ? undefined : exitCodes.usage
    }
    if (typed.kind === 'send') talk.send(typed.envelope)
    else if (typed.kind === 'help') for (const text of typedHelp()) say(text)
    else if (typed.kind === 'calls')
      for (const call of calls.list()) say(`${call.uuid} ${call.direction} ${call.state} ${call.peer}`)
    else if (typed.kind === 'disconnect') await talk.hangUp()
    else if (typed.kind === 'connect') {
      if (talk.line()?.state === 'open') say('Connected already.')
      else await talk.connect()
    } else if (typed.kind === 'wait' && !(await waitFor(typed.event))) {
      say(`The connection ended before ${typed.event} came.`)
      return console.isInteractive ? undefined : exitCodes.failed
    }
    return undefined
  }

  return async () => {
    const refused = await talk.connect()
    if (refused !== undefined) return codeOf(refused)
    let read = console.nextLine()
    for (;;) {
      const closed = talk.line()?.closed
      const text = await (closed === undefined ? read : Promise.race([read, closed]))
      if (typeof text === 'object' && text !== null) {
        say(closingText(text, url))
        if (!console.isInteractive && !text.byUs) return codeOf(text)
        talk.leave()
        continue
      }
      const code = text === null ? exitCodes.done : await act(readTyped(text, { calls, peerRoles: talk.peerRoles() }))
      if (code !== undefined) {
        const last = console.isInteractive ? code : await lastAnswers(code)
        // What was sent before the close still takes effect [ORD1].
        await talk.hangUp()
        return last
      }
      read = console.nextLine()
    }
  }
}

function codeOf(closed: Closed): number {
  return closed.code === 4401 ? exitCodes.negative : exitCodes.failed
}
