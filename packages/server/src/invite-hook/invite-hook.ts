/**
 * Asks the backend of a product about an invite before anything rings [HOOK5].
 *
 *   const hook = createInviteHook({ post, now, onAsked })
 *   await hook.ask(question, signal) → what was decided: `Verdict`
 */
import { type CallRef, callKey, type Participant, participantKey } from '../call/call.ts'
import { hookBody } from '../call/hook.ts'
import type { Post } from '../outgoing/post.ts'
import { signedHeaders } from '../outgoing/signature.ts'
import type { Timers } from '../ports/clock.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import { type Decided, type RedirectedTo, readDecision } from './answer.ts'
import { createTurns, type Release } from './turns.ts'

/** The time that a backend has to decide, the wait for a turn included, in ms. */
export const decisionMs = 2_000

/** The backend that decides for a product, and what becomes of an invite if it does not. */
export interface Decider {
  readonly url: string
  readonly secret: string
  readonly failure: ProductSettings['inviteFailure']
}

export interface Question extends CallRef {
  readonly decider: Decider
  readonly caller: Participant & { readonly displayName: string }
  /** The user_id is blank where a group is called. */
  readonly callee: Participant
  readonly group?: string
  readonly callType: string
  readonly contextType: string
  readonly contextId: string
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** Why an answer that redirects to somebody, or to a group, is not valid; undefined: it is. */
  readonly wrongWith: (callee: RedirectedTo) => MaybePromise<string | undefined>
}

/** `withdrawn`: the caller hung up before it was decided. */
export type Verdict = Decided | { readonly decision: 'withdrawn' }

/** How a question ended. `failed`: no valid answer came in time. */
export type AskResult = Verdict['decision'] | 'failed'

/** A question that has ended, for logs, metrics and the timeline of its call. */
export interface Asked {
  readonly question: Question
  readonly result: AskResult
  readonly afterMs: number
  /** Why it failed, and nothing of what was sent or answered. */
  readonly problem?: string
  /** The header by which the backend goes on with the trace of the call, if there is one [OTEL1]. */
  readonly traceparent?: string | undefined
}

export interface InviteHook {
  /** The same question again joins the one that is open. `signal` withdraws it. */
  ask(question: Question, signal: AbortSignal): Promise<Verdict>
}

export interface InviteHookOptions {
  readonly post: Post
  /** Wall clock, ms since the epoch. */
  readonly now: () => number
  readonly onAsked: (asked: Asked) => void
  /** The `traceparent` of a question, where calls are traced [OTEL1]. */
  readonly traceparent?: ((ref: CallRef) => string) | undefined
  readonly timers: Pick<Timers, 'after' | 'monotonic'>
  /** Tests do not wait for it. */
  readonly decisionMs?: number
}

/** What is sent. */
interface Asking {
  readonly question: Question
  readonly traceparent: string | undefined
}

interface Open {
  readonly verdict: Promise<Verdict>
  readonly abort: AbortController
}

export function createInviteHook(options: InviteHookOptions): InviteHook {
  const { onAsked, timers, decisionMs: limitMs = decisionMs } = options
  const turn = createTurns()
  const open = new Map<string, Open>()

  async function asked(question: Question, withdrawn: AbortSignal): Promise<Verdict> {
    const begin = timers.monotonic()
    const traceparent = options.traceparent?.(question)
    function end(result: AskResult, problem?: string): void {
      const afterMs = Math.round(timers.monotonic() - begin)
      onAsked({ question, result, afterMs, ...(problem && { problem }), ...(traceparent && { traceparent }) })
    }
    const late = new AbortController()
    const cancel = timers.after(limitMs, () => late.abort(new DOMException('no answer in time', 'TimeoutError')))
    const signal = AbortSignal.any([withdrawn, late.signal])
    const release = await turn(question.product, participantKey(question.caller), signal)
    const decided = await inTurn({ question, traceparent }, release, signal).finally(cancel)
    if (withdrawn.aborted) {
      end('withdrawn')
      return { decision: 'withdrawn' }
    }
    if ('problem' in decided) {
      end('failed', decided.problem)
      return question.decider.failure === 'allow'
        ? { decision: 'allow' }
        : { decision: 'refuse', reason: 'unavailable' }
    }
    end(decided.decision)
    return decided
  }

  async function inTurn(asking: Asking, release: Release | undefined, signal: AbortSignal) {
    if (release === undefined) return tooMany
    try {
      // Its turn came with the end of its time.
      return signal.aborted ? tooMany : await decisionOf(options, asking, signal)
    } finally {
      release()
    }
  }

  return {
    ask(question, signal) {
      const key = `${callKey(question)}${participantKey(question.caller)}`
      let one = open.get(key)
      if (one === undefined) {
        const abort = new AbortController()
        one = { abort, verdict: asked(question, abort.signal).finally(() => open.delete(key)) }
        open.set(key, one)
      }
      const { abort, verdict } = one
      const withdraw = () => abort.abort()
      if (signal.aborted) withdraw()
      signal.addEventListener('abort', withdraw)
      return verdict.finally(() => signal.removeEventListener('abort', withdraw))
    },
  }
}

const tooMany = { problem: 'too many questions were open' }

/** What an answer says, or why it says nothing. */
async function decisionOf(
  { post, now }: Pick<InviteHookOptions, 'post' | 'now'>,
  { question, traceparent }: Asking,
  signal: AbortSignal,
): Promise<Decided | { readonly problem: string }> {
  const { url, secret } = question.decider
  const id = idOf(question)
  const at = now()
  const body = bodyOf(question, at)
  const headers = { ...signedHeaders({ id, body }, [secret], at), ...(traceparent && { traceparent }) }
  let answer = await post({ url, headers, body, signal })
  // Nobody may have been there any more. It goes once more, on a new connection.
  if (!answer.ok && answer.wasStale) answer = await post({ url, headers, body, signal })
  if (!answer.ok) return { problem: answer.cause ?? answer.error }
  if (answer.status !== 200) return { problem: `status ${answer.status}` }
  const decided = answer.isCut ? undefined : readDecision(answer.body)
  if (decided === undefined) return { problem: 'the answer is no decision' }
  const problem = decided.decision === 'redirect' ? await question.wrongWith(decided.callee) : undefined
  return problem === undefined ? decided : { problem }
}

/** The same for the same call: so a backend can recognise a repeated question. */
function idOf({ callUuid }: CallRef): string {
  return `inv_${callUuid.replaceAll('-', '')}`
}

function bodyOf(question: Question, at: number): string {
  const { callUuid, caller, callee, group, callType, contextType, contextId, metadata } = question
  const data = {
    call_uuid: callUuid,
    caller: { user_id: caller.userId, role: caller.role, display_name: caller.displayName },
    ...(group === undefined
      ? { callee: { user_id: callee.userId, role: callee.role } }
      : { group: { role: callee.role, group } }),
    ...{ call_type: callType, context_type: contextType, context_id: contextId, metadata },
  }
  return hookBody('call.invite', at, data)
}
