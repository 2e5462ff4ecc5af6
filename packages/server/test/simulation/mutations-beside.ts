/** Breaks of what people do beside calling and answering: of the rule that is in the name. */
import type { Mutation } from './mutation.ts'

const invite = 'call/invite.ts'
const linked = 'call/linked.ts'
const take = 'call/take.ts'
const transfer = 'call/transfer.ts'
const group = 'call/group.ts'
const relay = 'calls/relay.ts'
const hook = 'invite-hook/invite-hook.ts'
const news = 'session/news.ts'

export const mutationsBeside: readonly Mutation[] = [
  {
    name: '[HOLD1] whether a side holds the call is not passed on',
    file: 'signaling/requests.ts',
    find: 'const said = { call_uuid, audio, video, screen, ...(held !== undefined && { held }) }',
    put: 'const said = { call_uuid, audio, video, screen }',
  },
  {
    name: '[HOLD1] who comes back hears what the peer said first',
    file: news,
    find: 'callOf(session, push.call).media = push',
    put: 'callOf(session, push.call).media ??= push',
  },
  {
    name: '[HOLD1] who comes back does not hear what the peer said last',
    file: news,
    find: "if (push.kind === 'media' && !knowsOver(session, push.call)) callOf(session, push.call).media = push",
    put: '',
  },
  {
    name: '[TAKE1] the former session hears that another one answered',
    file: take,
    find: 'moved: [moveFrom(place, side)],',
    put: '',
  },
  {
    name: '[TAKE1] the caller is not asked for a new offer',
    file: take,
    find: "notices: side === 'callee' ? [offerAnew(call)] : [],",
    put: 'notices: [],',
  },
  {
    name: '[TAKE1] the former session still speaks for the call',
    file: relay,
    find: 'return !delivery.undelivered.has(key) && !sessions.hasLeft(sender.sessionId, key)',
    put: 'return !delivery.undelivered.has(key)',
  },
  {
    name: '[XFER1] an old view of the first call decides about its end',
    file: 'stores/sql/call-steps.ts',
    find: '(link) => load(link, deadline)',
    put: '(link) => (attempt === 0 ? known.find(link) : undefined) ?? load(link, deadline)',
  },
  {
    name: '[XFER1] the first call ends before the answer of the new one',
    file: linked,
    find: 'return { ...decision, steps: [...decision.steps, ...also] }',
    put: 'return { ...decision, steps: [...also, ...decision.steps] }',
  },
  {
    name: '[XFER1] the new call rings on when the first one is over',
    file: linked,
    find: "return over(linked, { status: 'cancelled', reason: 'transfer_cancelled' }, null, now).steps",
    put: 'return []',
  },
  {
    name: '[XFER1] nobody hears that a transfer failed',
    file: linked,
    find: '[notTransferred(linked, after, now)]',
    put: '[]',
  },
  {
    name: '[XFER1] a call is transferred twice at once',
    file: transfer,
    find: "if (call.transferring !== undefined) return refuse('CALL_INVALID_STATE', { status: call.status })",
    put: '',
  },
  {
    name: '[XFER1] who is handed over does not hear it',
    file: transfer,
    find: 'peers: [transferringNews(first, call)]',
    put: 'peers: []',
  },
  {
    name: '[XFER1] the end of the first call does not wait for the answer that could not be told',
    file: 'calls/transitions.ts',
    find: 'if (!areAllTold && alsoToldOf(step) !== undefined) continue',
    put: '',
  },
  {
    name: '[GROUP1] the other members ring on when one has answered',
    file: 'call/decide.ts',
    find: "to: { place: 'rung', except: [...silenced, actor.sessionId] },",
    put: "to: { place: 'rung', except: [...silenced, actor.sessionId], member: actor.participant.userId },",
  },
  {
    name: '[GROUP1] a decline stops the ring at all members',
    file: 'call/effects.ts',
    find: "if (!('member' in to) || to.member === undefined) return rungBy(call)",
    put: "if ('place' in to) return rungBy(call)",
  },
  {
    name: '[GROUP1] a call that all have declined rings on',
    file: group,
    find: 'if (membersLeft(declined).length === 0)',
    put: "if (userId === '')",
  },
  {
    name: '[GROUP1] what a member sends before its accept is lost',
    file: relay,
    find: "return sideOf(call, participant) ?? (ringsAt(call, participant) ? 'callee' : undefined)",
    put: 'return sideOf(call, participant)',
  },
  {
    name: '[GROUP1] a call rings at a member who has declined',
    file: 'call/call.ts',
    find: 'return isMember(call, participant) && !declined.includes(participant.userId)',
    put: 'return isMember(call, participant)',
  },
  {
    name: '[HOOK5] what the backend refuses rings',
    file: invite,
    find: "    case 'refused': {\n      const { reason } = verdict",
    put: "    case 'refused': {\n      if (callUuid !== '') return undefined\n      const { reason } = verdict",
  },
  {
    name: '[HOOK5] a call rings where it was not redirected to',
    file: 'calls/ask-backend.ts',
    find: 'const { group: _, ...rest } = command',
    put: "if (command.callUuid !== '') return { ...command, verdict: allowed }\n      const { group: _, ...rest } = command",
  },
  {
    name: '[HOOK5] without an answer the call rings',
    file: hook,
    find: "return question.decider.failure === 'allow'",
    put: "return question.decider.failure === 'refuse'",
  },
  {
    name: '[HOOK5] a backend that does not answer is waited for',
    file: hook,
    find: 'timers.after(limitMs,',
    put: 'timers.after(limitMs * 1_000,',
  },
]
