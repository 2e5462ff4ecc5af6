import type { Mutation } from './mutation.ts'
import { mutationsBeside } from './mutations-beside.ts'
import { mutationsDesk } from './mutations-desk.ts'

/** A mutation, and the worlds that are lived for it. */
export interface PlacedMutation extends Mutation {
  /** What people do in them. */
  readonly people: 'plain' | 'all' | 'desk'
}

const delivery = 'delivery/delivery.ts'
const handingOn = 'delivery/handing-on.ts'
const deliveredPlaces = 'delivery/places.ts'
const turns = 'delivery/turns.ts'
const dueRings = 'calls/due-rings.ts'
const outbox = 'delivery/outbox.ts'
const relay = 'calls/relay.ts'
const claims = 'cluster/claims.ts'
const handoffs = 'cluster/handoffs.ts'
const leaving = 'cluster/leaving.ts'
const writer = 'cluster/writer.ts'
const answers = 'cluster/answers.ts'
const inbox = 'cluster/inbox.ts'
const members = 'cluster/members.ts'
const seenNodes = 'cluster/seen-nodes.ts'
const requests = 'cluster/requests.ts'
const lostSessions = 'cluster/lost-sessions.ts'
const ownSessions = 'cluster/own-sessions.ts'
const places = 'session/places.ts'
const pushes = 'session/pushes.ts'

const ofDelivery: readonly Mutation[] = [
  {
    name: 'a step that comes late is taken for told',
    file: delivery,
    find: 'if (!isLate && upTo >= version) return',
    put: 'if (isLate || upTo >= version) return',
  },
  {
    name: 'what could not be handed on is not remembered',
    file: turns,
    find: 'if (error instanceof StoreError) undelivered.add(key)',
    put: 'if (error instanceof StoreError) return false',
  },
  {
    name: 'a step counts as told before it is saved',
    file: handingOn,
    find: 'andThen(handed, () => sessions.confirm(key)),',
    put: 'andThen(handed, () => undefined),',
  },
  {
    name: 'what waited in a place does not go along',
    file: deliveredPlaces,
    find: 'const passOn = () => sessions.move(key, from, place.sessionId, place.settled, call.version, gate, lost, taken)',
    put: 'const passOn = () => true',
  },
  {
    name: 'the gate of an answer stays closed',
    file: handingOn,
    find: '...(isKnown && { early: ofCallee }) })',
    put: '})',
  },
  {
    name: 'what was kept before the accept is thrown away',
    file: handingOn,
    find: "apply('callee', { early: caller })",
    put: "apply('callee', { early: caller.slice(1) })",
  },
  {
    name: 'the outbox forgets a step that could not be told',
    file: outbox,
    find: "((caught === 'done') === isDone ? rows : [])",
    put: '(isDone ? rows : [])',
  },
  {
    name: 'the outbox is never looked through',
    file: outbox,
    find: 'await Promise.all([store.claim(claimSize), store.oldest()])',
    put: '[[], await store.oldest()] as const',
    mix: 'own',
  },
  {
    name: 'a relay goes to a place that is known to be old',
    file: relay,
    find: "const isOld = result === 'closed' || result === 'elsewhere' || result === 'gone'",
    put: "const isOld = result === 'closed'",
  },
  {
    name: 'a relay before the accept goes to nobody',
    file: relay,
    find: "const isKept = call.status === 'ringing'",
    put: 'const isKept = false',
  },
  {
    name: 'a relay that is early is answered as if it were taken',
    file: relay,
    find: "if (result === 'early') return afterOthers(message, (first) => passAgain(options, first, road))",
    put: "if (result === 'early') return call.status",
  },
  {
    name: 'a copy that is not whole is resumed',
    file: claims,
    find: 'if (!copy.isWhole) session.broken = true',
    put: '',
  },
  {
    name: 'a session that was taken over keeps its old fence',
    file: claims,
    find: 'session.saving.fence = copy.fence',
    put: '',
  },
  {
    name: 'a session is given away without its last save',
    file: leaving,
    find: 'await saves.give(session, to)',
    put: 'await saves.settle()',
  },
  {
    name: 'what an earlier socket asked goes on after it was retired',
    file: handoffs,
    find: 'await sink.retire()',
    put: '',
    from: 80,
  },
  {
    name: 'a save that was refused counts as one',
    file: writer,
    find: 'if (isLost || sent.some(({ isRefused }) => isRefused)) throw new RefusedError()',
    put: 'if (isLost) throw new RefusedError()',
  },
  {
    name: 'what a save could not write is forgotten',
    file: writer,
    find: 'for (const { change } of part) failed(change)',
    put: '',
  },
  {
    name: 'what the store has lost is not written again',
    file: writer,
    find: 'changes.tear(session)\n        isMissing = true',
    put: '',
  },
  {
    name: 'an answer is posted before what it answers for is saved',
    file: answers,
    find: 'const saving = saved()',
    put: 'const saving: Promise<void> | undefined = undefined as Promise<void> | undefined',
  },
  {
    name: 'a batch that comes twice is done twice',
    file: inbox,
    find: 'if (!isNew(from, n)) return',
    put: 'isNew(from, n)',
  },
  {
    name: 'a node that stands still for a second is dead',
    file: seenNodes,
    find: 'now - since > deadMs && isGone(name)',
    put: 'now - since > 1_000',
  },
  {
    name: 'a dead node is never found',
    file: seenNodes,
    find: 'if (!dead.has(name) && (each.hasLeft || isReplaced(name) || isSilent(name, each, received))) {',
    put: 'if (each.hasLeft && !dead.has(name)) {',
  },
  {
    name: 'an outage stops no lost clock',
    file: members,
    find: 'outages() {\n',
    put: 'outages() {\n        if (servedAt < Number.POSITIVE_INFINITY) return []\n',
  },
  {
    name: 'a node answers for a session that it has just given away',
    file: requests,
    find: 'return done instanceof Promise ? done.then((answer) => (owner.isHere(id) ? answer : notHere)) : done',
    put: 'return done',
  },
  {
    name: 'what a former owner had is not dropped',
    file: lostSessions,
    find: '      table.drop(session.identity.sessionId)\n',
    put: '',
  },
  {
    name: 'after Redis was emptied nobody writes again',
    file: ownSessions,
    find: 'if (session.saving.isSaved && isOf(session.identity.sessionId)) table.changes.tear(session)',
    put: '',
  },
  {
    name: 'a request is taken twice',
    file: places,
    find: 'return source !== undefined && session.taken?.get(source.sessionId)?.has(source.n) === true',
    put: 'return source === undefined && session.broken',
  },
  {
    name: 'a place that passes on takes what was proven along',
    file: places,
    find: '(seq > session.provenSeq && seq > (call?.acknowledgedSeq ?? 0)) ||',
    put: 'seq > 0 ||',
  },
  {
    name: 'relays that waited at a gate are dropped',
    file: places,
    find: 'for (const push of held) append(session, untaken(push))',
    put: 'for (const push of held.slice(1)) append(session, untaken(push))',
    from: 21,
  },
  {
    name: 'an old step moves a place back',
    file: places,
    find: 'if (before?.isOver || version < (before?.placeVersion ?? 0)) return false',
    put: '',
  },
  {
    name: 'a ring that is over is left to whoever had its timer',
    file: dueRings,
    find: 'const due = await store.dueRings(from, now - patienceMs, pageSize)',
    put: 'const due: readonly LiveCall[] = []',
  },
  {
    name: 'a relay that comes after one that was not taken is taken',
    file: pushes,
    find: "return isShared && isEarly(session, push) ? 'early' : appendTo(session, push)",
    put: 'return appendTo(session, push)',
  },
]

export const mutations: readonly PlacedMutation[] = [
  ...ofDelivery.map((each) => ({ ...each, people: 'plain' as const })),
  ...mutationsBeside.map((each) => ({ ...each, people: 'all' as const })),
  ...mutationsDesk.map((each) => ({ ...each, people: 'desk' as const })),
]

/** Those that were not found, each with how many seeds were lived for that at least. */
export const notFound: Readonly<Record<string, number>> = {
  'what could not be handed on is not remembered': 20,
  'a step counts as told before it is saved': 20,
  // With the mixes that the seeds draw.
  'what waited in a place does not go along': 20,
  'a copy that is not whole is resumed': 20,
  'a session is given away without its last save': 14,
  'a save that was refused counts as one': 12,
  'what a save could not write is forgotten': 15,
  'what the store has lost is not written again': 1,
  'an answer is posted before what it answers for is saved': 7,
  'a batch that comes twice is done twice': 9,
  'a node that stands still for a second is dead': 9,
  'an outage stops no lost clock': 20,
  'a node answers for a session that it has just given away': 16,
  'after Redis was emptied nobody writes again': 12,
  'a place that passes on takes what was proven along': 12,
  'an old step moves a place back': 6,
  'a ring that is over is left to whoever had its timer': 20,
  'a relay that comes after one that was not taken is taken': 20,
  'a relay goes to a place that is known to be old': 20,
  '[TAKE1] the former session still speaks for the call': 5,
  // Turns are judged only where nothing was broken for a while, and among few calls: scenarios look at them.
  '[GROUP1] the one who was idle last is called first': 30,
  '[GROUP1] nobody begins the next turn': 40,
  // Both take a store that is away at the right moment.
  '[XFER1] the end of the first call does not wait for the answer that could not be told': 20,
  '[GROUP1] a call rings at a member who has declined': 20,
  // Killed nodes are found by their signs, too.
  'a dead node is never found': 20,
}
