import { errorBody } from '@ringwire/protocol/errors'
import type { CallTransferStarted } from '@ringwire/protocol/events/call'
import { type CallRef, otherSide, type Participant, type Side } from '../call/call.ts'
import { checkTransfer, decideTransfer } from '../call/transfer.ts'
import { createFindGroup, type Named } from './called-groups.ts'
import { errorOf, type Outcome } from './request.ts'
import { createCommitTransfer, inviteOf, refused, type TransfersOptions, withSettings } from './transfers.ts'

/** A request of the application backend for a call. `by`: the side that leaves it. */
export interface BackendTransfer {
  readonly by: Side
  readonly to: Named
  readonly metadata: Readonly<Record<string, unknown>> | null
}

export type TransferForBackend = (ref: CallRef, wish: BackendTransfer) => Promise<Outcome<CallTransferStarted>>

/**
 * How the backend of a product transfers a call for one of its sides. It needs no token, and nobody asks it about what it wants
 * itself: no right and no limit of that side counts [SRV2, XFER1].
 */
export function createTransferForBackend(options: TransfersOptions): TransferForBackend {
  const { store, products, ringTimeoutMs, newUuid } = options
  const findGroup = createFindGroup(options)
  const commitTransfer = createCommitTransfer(options)

  return async (ref, { by, to, metadata }) => {
    const asker = { side: by }
    const target: Participant = { product: ref.product, ...to.callee }
    const own = checkTransfer(await store.load(ref), asker, target)
    if ('ok' in own) return refused(errorOf(own))
    const given = inviteOf(own.call, otherSide(by), target, metadata)
    const called = await findGroup(given.actor.participant, to)
    if (called === 'unknown') return refused(errorBody('GROUP_NOT_FOUND'))
    const settings = await products.settings(ref.product)
    const ringMs = called?.ringMs ?? settings.ringTimeoutMs ?? ringTimeoutMs
    const wish = called === undefined ? given : { ...given, group: called.group }
    const invite = withSettings(wish, settings, { ok: true }, newUuid(), ringMs)
    return commitTransfer(ref, invite, ({ sameUuid, live }, now) =>
      decideTransfer(sameUuid, live, { asker, invite }, now),
    )
  }
}
