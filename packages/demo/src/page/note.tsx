import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import type { Desk } from './desk.ts'
import { useStore } from './store.ts'

/** A person should know this of the connection to the service. During a call the header may not be there to say it. */
export function Note({ desk }: { desk: Desk }) {
  const { call } = useCallUi()
  const { state } = useCallClient(desk.client)
  const said = useStore(desk.note)
  const isLost = call !== undefined && state.name !== 'online' && state.name !== 'closed'
  return (
    <p className="note" role="status" data-testid="note">
      {said || (isLost ? 'The service cannot be reached. Your call goes on.' : '')}
    </p>
  )
}
