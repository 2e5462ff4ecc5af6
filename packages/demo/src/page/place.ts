import { useCallClient } from '@ringwire/client/react'
import { useCallUi } from '@ringwire/ui'
import type { CallType, Peer } from './backend.ts'

/** Calling people as this page's backend writes them. One call at a time is enough for a demo. */
export function usePlace() {
  const { client, call, place } = useCallUi()
  const { state } = useCallClient(client)
  return {
    mayCall: state.name === 'online' && call === undefined,
    /** A group, unless one of its members is known. */
    call({ user_id, role, group, display_name }: Peer, callType: CallType): void {
      const about = { role, displayName: display_name, callType }
      if (user_id) place({ userId: user_id, ...about })
      else if (group) place({ group, ...about })
    },
  }
}
