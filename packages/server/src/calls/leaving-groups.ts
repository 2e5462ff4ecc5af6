/** Members who are no longer in a group leave the calls that ring at it [GROUP1]. */
import type { Call, CallRef } from '../call/call.ts'
import type { CallCommand } from '../call/command.ts'
import type { CallStore, Position, SeenCall } from '../ports/call-store.ts'
import type { GroupName, Groups } from '../ports/groups.ts'
import { StoreError } from '../ports/store-error.ts'

export interface LeavingGroupsOptions {
  readonly store: Pick<CallStore, 'list'>
  readonly run: Run
}

type Run = (call: CallRef, command: CallCommand) => Promise<unknown>

const pageSize = 100

async function leaveUnless(members: readonly string[], call: Call, run: Run): Promise<void> {
  const gone = call.group?.members.filter((userId) => !members.includes(userId)) ?? []
  if (gone.length > 0) await run(call, { type: 'leave', userIds: gone })
}

/** The group has only these members by now: resolves when its calls ring at nobody else any more. */
export function createLeavingGroups({ store, run }: LeavingGroupsOptions) {
  /** The calls of a product that ring: few of them, for a short time. */
  async function* ringing(product: string): AsyncGenerator<SeenCall['call']> {
    const query = { product, participant: undefined, statuses: ['ringing'], since: 0, limit: pageSize } as const
    for (let after: Position | undefined, isLast = false; !isLast; isLast = after === undefined) {
      const page = await store.list({ ...query, after })
      yield* page.calls.map(({ call }) => call)
      after = page.next
    }
  }

  return async ({ product, role, name }: GroupName, members: readonly string[]): Promise<void> => {
    for await (const call of ringing(product)) {
      const { callee, group } = call
      if (group?.name === name && callee.role === role) await leaveUnless(members, call, run)
    }
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
