/**
 * What can be typed into the phone of the command line.
 *
 *   readTyped('invite ben agent', { calls, peerRoles }) → what to do, or `{ kind: 'mistake', message }`
 *   typedHelp()                                         → what can be typed, a line each
 */
import { nearest } from '../../config/nearest.ts'
import type { CallVerb, PhoneCalls } from './calls.ts'
import type { Envelope } from './envelope.ts'

export type Typed =
  | { readonly kind: 'send'; readonly envelope: Envelope }
  | { readonly kind: 'wait'; readonly event: string }
  | { readonly kind: 'nothing' | 'help' | 'calls' | 'connect' | 'disconnect' | 'quit' }
  | { readonly kind: 'mistake'; readonly message: string }

export interface TypedContext {
  readonly calls: PhoneCalls
  /** The roles that the token may call. */
  readonly peerRoles: readonly string[]
}

interface Word {
  readonly usage: string
  readonly meaning: string
  read(args: readonly string[], context: TypedContext, rest: string): Typed
}

/** Without CALL, the newest call that the verb can be meant for. */
const words: Readonly<Record<string, Word>> = {
  invite: {
    usage: 'invite USER|--group NAME [ROLE] [CALL_TYPE]',
    meaning: 'call somebody, or a group; ROLE may be left out if the token may only call one role',
    read: (args, { peerRoles }) => {
      const isGroup = args[0] === '--group'
      const [name, role, type] = isGroup ? args.slice(1) : args
      const [only, ...others] = peerRoles
      const callee = role ?? (others.length === 0 ? only : undefined)
      if (name === undefined)
        return mistake(isGroup ? 'invite --group NAME [ROLE]: which group?' : 'invite USER [ROLE]: whom?')
      if (callee === undefined) {
        const usage = isGroup ? 'invite --group NAME ROLE' : 'invite USER ROLE'
        return mistake(`${usage}: which role? The token may call ${list(peerRoles)}.`)
      }
      const whom = isGroup ? { callee_group: name } : { callee_user_id: name }
      const call_type = type === undefined ? {} : { call_type: type }
      return send('call.invite', { ...whom, callee_role: callee, ...call_type })
    },
  },
  accept: verb('accept', 'accept [CALL]', 'answer the call that rings here'),
  reject: verb('reject', 'reject [REASON] [CALL]', 'decline it; REASON as busy or declined'),
  cancel: verb('cancel', 'cancel [REASON] [CALL]', 'take back your own call while it rings'),
  connected: verb('connected', 'connected [CALL]', 'say that media flows'),
  end: verb('end', 'end [REASON] [CALL]', 'hang up'),
  send: {
    usage: 'send EVENT [JSON]',
    meaning: `any request, as webrtc.offer; JSON is its data`,
    read: ([event], _context, rest) => {
      if (event === undefined) return mistake('send EVENT [JSON]: which event?')
      const json = rest.slice(event.length).trim()
      const data = json === '' ? {} : readObject(json)
      return data === undefined ? mistake('send EVENT [JSON]: the data is not a JSON object.') : send(event, data)
    },
  },
  wait: {
    usage: 'wait EVENT',
    meaning: 'for scripts: read no more lines until the event has come, after the last wait; without a limit',
    read: ([event]) => (event === undefined ? mistake('wait EVENT: for which event?') : { kind: 'wait', event }),
  },
  calls: { usage: 'calls', meaning: 'the calls that this phone knows', read: () => ({ kind: 'calls' }) },
  disconnect: { usage: 'disconnect', meaning: 'close the socket', read: () => ({ kind: 'disconnect' }) },
  connect: { usage: 'connect', meaning: 'connect again', read: () => ({ kind: 'connect' }) },
  help: { usage: 'help', meaning: 'what can be typed', read: () => ({ kind: 'help' }) },
  quit: { usage: 'quit', meaning: 'leave; so does Ctrl-D', read: () => ({ kind: 'quit' }) },
}

export const typedWords = Object.keys(words)

export function typedHelp(): string[] {
  const width = Math.max(...Object.values(words).map(({ usage }) => usage.length))
  const lines = Object.values(words).map(({ usage, meaning }) => `${usage.padEnd(width)}  ${meaning}`)
  return [
    ...lines,
    'CALL is a call_uuid or its beginning; without it, the newest call that fits. A name with spaces: "ann b".',
  ]
}

export function readTyped(line: string, context: TypedContext): Typed {
  const text = line.trim()
  const [name = '', ...args] = split(text)
  if (name === '') return { kind: 'nothing' }
  const word = Object.hasOwn(words, name) ? words[name] : undefined
  if (word !== undefined) return word.read(args, context, text.slice(name.length).trim())
  const meant = nearest(name, typedWords)
  return mistake(meant === undefined ? 'That is not a command: help lists the commands.' : `Did you mean ${meant}?`)
}

function verb(name: CallVerb, usage: string, meaning: string): Word {
  return {
    usage,
    meaning,
    read(args, { calls }) {
      const named = args.find((arg) => isUuid(arg) || (arg.length >= 4 && calls.find(arg) !== undefined))
      const [reason, ...more] = args.filter((arg) => arg !== named)
      const takesReason = usage.includes('REASON')
      if (more.length > 0 || (reason !== undefined && !takesReason)) {
        return mistake(`${usage}: no call that is known here begins with ${reason}.`)
      }
      const call_uuid = named === undefined ? calls.pick(name) : (calls.find(named) ?? named)
      if (call_uuid === undefined) return mistake(`There is no call to ${name === 'connected' ? 'report' : name}.`)
      return send(`call.${name}`, { call_uuid, ...(reason === undefined ? {} : { reason }) })
    },
  }
}

const send = (event: string, data: Readonly<Record<string, unknown>>): Typed => ({
  kind: 'send',
  envelope: { event, data },
})
const mistake = (message: string): Typed => ({ kind: 'mistake', message })
const list = (roles: readonly string[]) => (roles.length === 0 ? 'none that is known here' : roles.join(', '))
const isUuid = (text: string) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)

/** Words between spaces; quotes keep spaces. */
function split(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}

function readObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
