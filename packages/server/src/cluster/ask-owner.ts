import type { Timers } from '../ports/clock.ts'
import type { Push } from '../ports/push.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type { SessionStep } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { type CallNews, released } from './call-news.ts'
import { type Frame, isRelayFrame, notHere, relayFrame } from './frames.ts'
import type { Inbox } from './inbox.ts'
import type { Living } from './living.ts'
import type { Operation, Operations } from './operations.ts'
import type { Owner } from './owner.ts'
import type { Requests } from './requests.ts'
import { changing, mostTries, pauseOf } from './retries.ts'

export interface AskOwnerOptions extends Pick<Requests, 'doHere'> {
  readonly node: string
  readonly owner: Owner
  readonly inbox: Pick<Inbox, 'ask'>
  readonly living: Pick<Living, 'isSilent'>
  /** News of what was committed to a call, for which questions wait, and of what was delivered, for which relays wait. */
  readonly committed: CallNews
  readonly delivered: CallNews
  readonly timers: Timers
}

/** Does something with a session where its owner is. If nobody owns it, it is done here, as with a session that nobody knows. */
export type AskOwner = <O extends Operation>(
  operation: O,
  sessionId: string,
  ...args: Parameters<Operations[O]> extends [string, ...infer Rest] ? Rest : never
) => ReturnType<Operations[O]> | Promise<ReturnType<Operations[O]>>

/** Longer than it takes to know that a node is dead. In ms. */
const repeatMs = 8_000

export function createAskOwner(options: AskOwnerOptions): AskOwner {
  const { node, owner, inbox, living, doHere, committed, delivered, timers } = options

  async function askAway(operation: Operation, id: string, args: readonly unknown[]): Promise<unknown> {
    if (tagOfSessionId(id) === undefined) return doHere(operation, id, args)
    const relay = operation === 'append' ? relayFrame(id, args[0] as Push) : undefined
    const frame = relay ?? (['do', operation, id, args] as const)
    const until = timers.monotonic() + repeatMs
    for (let tries = 0; tries < mostTries; tries++) {
      // Mostly known: a relay goes out in the turn in which it came.
      const at = owner.routeOf(id) ?? (await owner.ownerOf(id))
      if (at === undefined || at === node) return doHere(operation, id, args)
      const answer = await askNode(at, frame, callIn(operation, args)).catch((error) => {
        owner.forgetRoute(id)
        // Its session's owner may have died with it, and who owns that session now knows whether it did [EXT4].
        if (relay !== undefined && timers.monotonic() < until) return notHere
        throw error
      })
      if (answer !== notHere) return answer
      owner.forgetRoute(id)
      await timers.sleep(pauseOf(tries))
    }
    throw changing()
  }

  /**
   * A silent node may not answer in time, and the session may get another owner first. A relay looks for that owner once a
   * step of its call is delivered. Everything else fails as soon as the call has a new step, which delivers it again.
   */
  async function askNode(at: string, frame: Frame, call: string | undefined): Promise<unknown> {
    const asked = inbox.ask(at, frame)
    if (call === undefined || !living.isSilent(at)) return asked
    const isRelay = isRelayFrame(frame)
    const answer = await (isRelay ? delivered : committed).answerOr(call, asked)
    if (answer !== released) return answer
    if (isRelay) return notHere
    throw new StoreError('unknown', 'the node of the session is silent')
  }

  return (operation, id, ...args) => {
    type Result = ReturnType<Operations[typeof operation]>
    if (owner.isHere(id)) return doHere(operation, id, args) as Result
    return askAway(operation, id, args) as Promise<Result>
  }
}

/** The call that an operation is about. */
function callIn(operation: Operation, args: readonly unknown[]): string | undefined {
  const [about] = args
  if (operation === 'append' || operation === 'apply') return (about as Push | SessionStep).call
  return typeof about === 'string' ? about : undefined
}
