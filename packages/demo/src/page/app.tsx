import { useState } from 'react'
import type { Identity } from './backend.ts'
import { createDesk } from './desk.ts'
import { DeskView } from './desk-view.tsx'
import { loadIdentity, saveIdentity } from './identity.ts'
import { SignIn } from './sign-in.tsx'

export function App() {
  const [desk, setDesk] = useState(() => {
    const identity = loadIdentity()
    return identity && createDesk(identity)
  })
  if (desk) return <DeskView desk={desk} />
  const enter = (identity: Identity) => {
    saveIdentity(identity)
    setDesk(createDesk(identity))
  }
  return <SignIn onEnter={enter} />
}
