/**
 * Members who are no longer in a group leave the calls that ring at it [GROUP1]. Live calls to groups name nobody who is
 * erased [SRV2].
 */
import type { Call, CallRef, Participant } from '../call/call.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import type { CallStore, Position, SeenCall } from '../ports/call-store.ts'
import type { GroupName, Groups } from '../ports/groups.ts'
import { StoreError } from '../ports/store-error.ts'

export interface LeavingGroupsOptions {
  readonly store: Pick<CallStore, 'list'>
  readonly run: Run
}

type Run = (call: CallRef, command: CallCommand) => Promise<Pick<Decision, 'steps'>>

export interface LeavingGroups {
  /** The group has only these members by now: resolves when its calls ring at nobody else any more. */
  leave(name: GroupName, members: readonly string[]): Promise<void>
  /**
   * Somebody is erased who has no place in a live call: resolves when no live call names it as a member. What happened before to
   * those calls may still name it.
   */
  forget(participant: Participant): Promise<void>
}

const pageSize = 100
const ringing = ['ringing'] as const
const live = ['ringing', 'accepted', 'connected'] as const

async function leaveUnless(members: readonly string[], call: Call, run: Run): Promise<void> {
  const gone = call.group?.members.filter((userId) => !members.includes(userId)) ?? []
  if (gone.length > 0) await run(call, { type: 'leave', userIds: gone })
}

export function createLeavingGroups({ store, run }: LeavingGroupsOptions): LeavingGroups {
  async function* callsOf(product: string, statuses: readonly Call['status'][]): AsyncGenerator<SeenCall['call']> {
    const query = { product, participant: undefined, statuses, since: 0, limit: pageSize } as const
    for (let after: Position | undefined, isLast = false; !isLast; isLast = after === undefined) {
      const page = await store.list({ ...query, after })
      yield* page.calls.map(({ call }) => call)
      after = page.next
    }
  }

  return {
    async leave({ product, role, name }, members) {
      // The calls of a product that ring: few of them, for a short time.
      for await (const call of callsOf(product, ringing)) {
        const { callee, group } = call
        if (group?.name === name && callee.role === role) await leaveUnless(members, call, run)
      }
    },
    async forget({ product, role, userId }) {
      for await (const { callee, group, ...call } of callsOf(product, live)) {
        if (group === undefined || callee.role !== role) continue
        const { members, left = [] } = group
        if (![...members, ...left].includes(userId)) continue
        // The first step may be that it stops ringing there.
        for (let isDone = false; !isDone; ) isDone = (await run(call, { type: 'forget', userId })).steps.length === 0
      }
    },
  }
}

export interface LeavingSinceOptions {
  readonly groups: Pick<Groups, 'get'>
  readonly run: Run
  readonly onError: (error: unknown) => void
}

/** Resolves when a new call is handed on, and every member who has left its group meanwhile has left the call. */
export type LeavingSince = (call: Call, handedOn: Promise<void>) => Promise<void>

/**
 * A call has just been committed, and its group was read before that: a change of the group meanwhile did not find the
 * call, so former members leave it now.
 */
export function createLeavingSince({ groups, run, onError }: LeavingSinceOptions): LeavingSince {
  async function leave(call: Call, name: string): Promise<void> {
    try {
      const found = await groups.get({ product: call.product, role: call.callee.role, name })
      await leaveUnless(found?.members ?? [], call, run)
    } catch (error) {
      // Nobody knows then who left. The call rings as it was committed.
      if (!(error instanceof StoreError)) onError(error)
    }
  }

  return async (call, handedOn) => {
    const { group, status } = call
    if (group === undefined || status !== 'ringing') return handedOn
    await Promise.all([handedOn, leave(call, group.name)])
  }
}
