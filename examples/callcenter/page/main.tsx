/** The signed-in user decides what is shown: an agent's desk, or a customer's page. */
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { AgentPage } from './agent.tsx'
import { type Start, start } from './backend.ts'
import { CustomerPage } from './customer.tsx'
import { SignIn } from './sign-in.tsx'

function CallCentre() {
  const [known, setKnown] = useState<Start>()
  const [problem, setProblem] = useState(false)
  const load = () => {
    start().then(setKnown, () => setProblem(true))
  }
  useEffect(load, [])

  if (problem) {
    return (
      <main className="welcome">
        <h1>The call centre cannot be reached</h1>
        <p>Look whether you are online, then load this page again.</p>
      </main>
    )
  }
  if (known === undefined) return null
  const { user } = known
  if (user === null) return <SignIn people={known.people} onSignedIn={load} />
  return user.role === 'agent' ? <AgentPage user={user} start={known} /> : <CustomerPage user={user} />
}

createRoot(document.getElementById('root') as HTMLElement).render(<CallCentre />)
