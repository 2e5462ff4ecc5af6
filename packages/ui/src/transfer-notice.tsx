import { useTransfer } from '@ringwire/client/react'
import { useState } from 'react'
import { useCallUi, useWords } from './provider.tsx'
import { nameOf } from './words.ts'

/** The words for the user about a transfer of the call; undefined while there is nothing to say. */
export function useTransferText(): string | undefined {
  const { call, transfers, phase } = useCallUi()
  const words = useWords()
  const transfer = useTransfer(transfers, call)
  if (!call || !transfer || phase === 'incoming' || transfer.name === 'done') return undefined
  const { to, call: next } = transfer
  // The service tells the target's name once it has answered. An id says nothing to the transferred user.
  const known = next ? (to?.displayName ?? next.group) : to && nameOf({ peer: to })
  const target = known ?? words.somebody
  if (transfer.name === 'failed') return words.transferFailed(transfer, target)
  return next ? words.beingTransferred(nameOf(call), target) : words.transferring(target)
}

/** The call is being transferred, at either side. The transferred side may stay; a failure is read and closed [XFER1]. */
export function TransferNotice() {
  const { call, transfers } = useCallUi()
  const words = useWords()
  const transfer = useTransfer(transfers, call)
  const text = useTransferText()
  const [closed, setClosed] = useState<unknown>()
  if (!call || !transfer || !text || closed === transfer) return null
  const { name, call: next } = transfer
  return (
    <div className="rw-second" data-testid="transfer-notice" data-transfer={name}>
      <p>{text}</p>
      {name === 'ringing' && next && (
        <button type="button" className="rw-answer rw-quiet" data-testid="stay" onClick={() => void next.cancel()}>
          {words.stay(nameOf(call))}
        </button>
      )}
      {name === 'failed' && (
        <button
          type="button"
          className="rw-answer rw-quiet"
          data-testid="close-transfer"
          onClick={() => setClosed(transfer)}
        >
          {words.close}
        </button>
      )}
    </div>
  )
}
