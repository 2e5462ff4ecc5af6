/** Members who are no longer in a group leave the calls that ring at it [GROUP1]. */
import type { CallRef } from '../call/call.ts'
import type { CallCommand } from '../call/command.ts'
import type { CallStore, Position, SeenCall } from '../ports/call-store.ts'
import type { GroupName } from '../ports/groups.ts'

export interface LeavingGroupsOptions {
  readonly store: Pick<CallStore, 'list'>
  readonly run: (call: CallRef, command: CallCommand) => Promise<unknown>
}

const pageSize = 100

/** The group has only these members by now: resolves when its calls ring at nobody else any more. */
export function createLeavingGroups({ store, run }: LeavingGroupsOptions) {
  /** What calls of a product ring: few of them, for a short time. */
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
      if (group?.name !== name || callee.role !== role) continue
      const gone = group.members.filter((userId) => !members.includes(userId))
      if (gone.length > 0) await run(call, { type: 'leave', userIds: gone })
    }
  }
}
