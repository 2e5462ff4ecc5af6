/** @jsxImportSource preact */
import type { CallView, TransferBegun, TransferRequest } from '@ringwire/protocol/backend'
import { useState } from 'preact/hooks'
import { ask } from './ask.ts'
import { Choice, Do } from './parts.tsx'
import { productPath } from './products.ts'

interface TransferProps {
  readonly product: string
  readonly call: CallView
  readonly onBegun: () => void
}

const sides = ['caller', 'callee'] as const
const targets = ['user_id', 'group'] as const

/** Hands one side of an answered call over to somebody else, as a backend does [XFER1]. */
export function TransferCall({ product, call, onBegun }: TransferProps) {
  const [by, setBy] = useState<TransferRequest['by']>('callee')
  const [role, setRole] = useState(call.callee.role)
  const [target, setTarget] = useState<(typeof targets)[number]>('user_id')
  const [name, setName] = useState('')
  const isFilled = role.trim() !== '' && name.trim() !== ''

  async function act(): Promise<void> {
    const body: TransferRequest = { by, to: { role, [target]: name } }
    await ask<TransferBegun>(productPath(product, 'calls', call.call_uuid, 'transfer'), { method: 'POST', body })
    onBegun()
  }

  return (
    <Do
      label="Transfer"
      testId="transfer-call"
      question="It rings at the target. When that answers, the side below leaves the call, and the other one goes on."
      isDangerous={false}
      isReady={isFilled}
      act={act}
    >
      <Choice label="Who leaves" value={by} values={sides} onChange={setBy} testId="by" />
      <label>
        Role of the target
        <input value={role} data-testid="to-role" onInput={({ currentTarget }) => setRole(currentTarget.value)} />
      </label>
      <Choice label="Target" value={target} values={targets} onChange={setTarget} testId="to" />
      <label>
        Its name
        <input value={name} data-testid="to-name" onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
    </Do>
  )
}
