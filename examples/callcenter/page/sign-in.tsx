import { useState } from 'react'
import type { Person } from './backend.ts'
import { Avatar } from './parts.tsx'

/** Your application has a page like this already, with passwords. */
export function SignIn({ people, onSignedIn }: { people: readonly Person[]; onSignedIn(): void }) {
  const [problem, setProblem] = useState(false)
  const signIn = async (name: string) => {
    const response = await fetch(`/api/sign-in?name=${name}`, { method: 'POST' }).catch(() => undefined)
    if (response?.ok) onSignedIn()
    else setProblem(true)
  }
  const group = (role: Person['role'], title: string) => (
    <section className="card">
      <h2>{title}</h2>
      <ul className="rows">
        {people
          .filter((person) => person.role === role)
          .map(({ user_id, display_name, about }) => (
            <li key={user_id}>
              <button type="button" className="row" id={user_id} onClick={() => signIn(user_id)}>
                <Avatar name={display_name} />
                <span className="what">
                  <strong>{display_name}</strong>
                  <span>{about}</span>
                </span>
                <span className="go" aria-hidden="true">
                  →
                </span>
              </button>
            </li>
          ))}
      </ul>
    </section>
  )
  return (
    <main className="welcome">
      <h1>Call centre</h1>
      <p>Be an agent here, and a customer in a private window.</p>
      {problem && (
        <p className="banner" role="alert">
          That did not work. Try again in a moment.
        </p>
      )}
      <div className="halves">
        {group('agent', 'Agents')}
        {group('customer', 'Customers')}
      </div>
    </main>
  )
}
