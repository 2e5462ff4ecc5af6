/** Breaks of what people at a desk do: of the rule that is in the name. */
import type { Mutation } from './mutation.ts'

const join = 'call/join.ts'
const turns = 'call/turns.ts'

export const mutationsDesk: readonly Mutation[] = [
  {
    name: '[XFER1] a consultation ends the first call only',
    file: join,
    find: 'const ends = [pair.first, pair.second].flatMap(',
    put: 'const ends = [pair.first].flatMap(',
  },
  {
    name: '[XFER1] the two who are connected do not hear it',
    file: join,
    find: "event: { type: 'accepted', at: now, by: null, notices: [], peers }",
    put: "event: { type: 'accepted', at: now, by: null, notices: [], peers: peers.slice(2) }",
  },
  {
    name: '[XFER1] both calls end before the one that they become',
    file: join,
    find: 'steps: [joined, ...ends]',
    put: 'steps: [...ends, joined]',
  },
  {
    name: '[XFER1] who asked for a consultation stays in it',
    file: join,
    find: 'const [left, right] = [otherSide(one), otherSide(two)]',
    put: 'const [left, right] = [otherSide(one), two]',
  },
  {
    name: '[GROUP1] a member does not hear that its turn is over',
    file: turns,
    find: "return changed(next, { type: 'passed', at: now, by: null, notices })",
    put: "return changed(next, { type: 'passed', at: now, by: null, notices: notices.slice(1) })",
  },
  {
    name: '[GROUP1] nobody begins the next turn',
    file: 'calls/turn-taking.ts',
    find: 'return beginTurn(decision.call)',
    put: "return ref.callUuid === '' ? beginTurn(decision.call) : decision",
  },
  {
    name: '[GROUP1] a member who has declined has another turn',
    file: turns,
    find: 'return members.slice(turns.next).filter((userId) => !declined.includes(userId))',
    put: "return members.slice(turns.next).filter((userId) => userId !== '' || declined.length < 0)",
  },
  {
    name: '[GROUP1] the one who was idle last is called first',
    file: 'calls/called-groups.ts',
    find: 'a.since === b.since ? 0 : a.since - b.since',
    put: 'a.since === b.since ? 0 : b.since - a.since',
  },
]
