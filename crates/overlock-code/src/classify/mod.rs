pub(crate) fn syntax_of(_: &str) -> crate::Syntax { crate::Syntax::CSharp }
