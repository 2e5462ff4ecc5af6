import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import type { CallType, Peer } from './backend.ts'

/** Calling people as this page's backend writes them. One call at a time is enough for a demo. */
export function usePlace() {
  const { client, call, place } = useCallUi()
  const { state } = useCallClient(client)
  return {
    mayCall: state.name === 'online' && call === undefined,
    call({ user_id, role, display_name }: Peer, callType: CallType): void {
      place({ userId: user_id, role, displayName: display_name, callType })
    },
  }
}
