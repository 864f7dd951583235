//! Which types may lie in durable memory.

/// A type whose values survive a restart.
///
/// # Safety
/// A value holds no reference, no pointer to ordinary memory or code, nothing of the process, and no interior mutability; its layout is
/// fixed (`repr(C)`), and `describe` names it. [`durable_struct!`](crate::durable_struct) implements it for structs and checks each member.
pub unsafe trait Durable: Send + Sync + 'static {
    /// Appends the type's name and those of its parts, down to `depth` levels. Compared when a root is found again.
    fn describe(text: &mut String, depth: usize);
}

macro_rules! plain {
    ($($name:ident)*) => { $(
        // SAFETY: a number, bool or char is its bytes.
        unsafe impl Durable for $name {
            fn describe(text: &mut String, _: usize) {
                text.push_str(stringify!($name));
            }
        }
    )* };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char);

// SAFETY: an array is its elements, in order.
unsafe impl<T: Durable, const N: usize> Durable for [T; N] {
    fn describe(text: &mut String, depth: usize) {
        text.push('[');
        T::describe(text, depth);
        text.push_str(&format!("; {N}]"));
    }
}

/// Declares a struct with a fixed layout, all of whose members are [`Durable`], and makes it `Durable`.
///
/// ```
/// stillpoint::durable_struct! {
///     pub struct Account { pub owner: stillpoint::PString, pub cents: i64 }
/// }
/// ```
/// A member that cannot survive does not compile:
/// ```compile_fail
/// stillpoint::durable_struct! { struct Account { owner: String } }
/// ```
/// ```compile_fail
/// stillpoint::durable_struct! { struct Account { owner: &'static str } }
/// ```
#[macro_export]
macro_rules! durable_struct {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident { $($(#[$of_member:meta])* $see:vis $member:ident : $type:ty),* $(,)? }) => {
        $(#[$attribute])*
        #[repr(C)]
        $visible struct $name { $($(#[$of_member])* $see $member: $type),* }

        // SAFETY: repr(C), and describe() below compiles for durable members only.
        unsafe impl $crate::Durable for $name {
            fn describe(text: &mut String, depth: usize) {
                text.push_str(stringify!($name));
                text.push_str(" { ");
                $(
                    text.push_str(concat!(stringify!($member), ": "));
                    if depth == 0 {
                        text.push_str(stringify!($type));
                    } else {
                        <$type as $crate::Durable>::describe(text, depth - 1);
                    }
                    text.push_str(", ");
                )*
                text.push('}');
            }
        }
    };
}
